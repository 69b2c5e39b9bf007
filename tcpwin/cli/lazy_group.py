"""A group of commands each in a file of its own, which is imported when the command is called."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

import click


class LazyGroup(click.Group):
    """A group by its commands' one-line helps: the code of one is `tcpwin.cli.GROUP_NAME`, an object of that name.

    Where the name is Python's own, `objects` has the object's.
    """

    subcommands: Mapping[str, str] = {}
    objects: Mapping[str, str] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(self.subcommands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in self.subcommands:
            return None
        module = import_module(f"tcpwin.cli.{self.name}_{cmd_name}")
        command: click.Command = getattr(module, self.objects.get(cmd_name, cmd_name))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(sorted(self.subcommands.items()))
