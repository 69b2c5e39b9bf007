"""`tcpwin lab`: the reference lab, one subcommand a file."""

from __future__ import annotations

from importlib import import_module

import click

SUBCOMMANDS = {
    "build": "Build the lab's kernel, once.",
    "drive": "Connect to a workload and read from it.",
    "lift": "Run a scenario with each limit lifted: what does each cost?",
    "list": "List the scenarios that come with tcpwin.",
    "run": "Run scenarios, each to a bundle.",
    "serve": "Wait for a workload's reader and send to it.",
    "show": "Show a scenario and what it changes.",
    "worlds": "Draw scenarios by a seed, and lift each one's limits.",
}
"""Each subcommand's one-line help; its code is `tcpwin.cli.lab_NAME`, an object of the same name."""
_OBJECTS = {"list": "list_"}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in SUBCOMMANDS:
            return None
        module = import_module(f"tcpwin.cli.lab_{cmd_name}")
        command: click.Command = getattr(module, _OBJECTS.get(cmd_name, cmd_name))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(sorted(SUBCOMMANDS.items()))


@click.group(cls=_LazyGroup)
def lab() -> None:
    """Run published experiments: on two hosts of yours, or in a real Linux kernel with virtual time."""
