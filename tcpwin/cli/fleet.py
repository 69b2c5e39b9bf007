"""`tcpwin fleet`: many captures as one data set, one subcommand a file."""

from __future__ import annotations

from importlib import import_module

import click

SUBCOMMANDS = {
    "run": "Measure many captures into a data set of Parquet files.",
    "show": "Show what limited its connections, and the worst of them.",
    "sql": "Ask it a question in SQL.",
}
"""Each subcommand's one-line help; its code is `tcpwin.cli.fleet_NAME`, an object of the same name."""
_OBJECTS = {"show": "show_"}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in SUBCOMMANDS:
            return None
        module = import_module(f"tcpwin.cli.fleet_{cmd_name}")
        command: click.Command = getattr(module, _OBJECTS.get(cmd_name, cmd_name))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(sorted(SUBCOMMANDS.items()))


@click.group(cls=_LazyGroup)
def fleet() -> None:
    """Measure many captures side by side, keep the results as one data set, and ask it in SQL."""
