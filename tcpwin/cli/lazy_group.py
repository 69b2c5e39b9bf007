"""A command group that imports the code of a command when it is called."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

import click


class LazyGroup(click.Group):
    """A group with the one-line help of each command; the command is the object of that name in `tcpwin.cli.GROUP`.

    `homes` lists the commands in other modules; `objects` the object names that differ because Python or the group uses
    the command's name.
    """

    subcommands: Mapping[str, str] = {}
    objects: Mapping[str, str] = {}
    homes: Mapping[str, str] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(self.subcommands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in self.subcommands:
            return None
        module = import_module(f"tcpwin.cli.{self.homes.get(cmd_name, self.name)}")
        command: click.Command = getattr(module, self.objects.get(cmd_name, cmd_name))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(sorted(self.subcommands.items()))
