"""`tcpwin fleet`: many captures as one data set, one subcommand a file."""

from __future__ import annotations

import click

from tcpwin.cli.lazy_group import LazyGroup

SUBCOMMANDS = {
    "run": "Measure many captures into a data set of Parquet files.",
    "show": "Show what limited its connections, and the worst of them.",
    "sql": "Ask it a question in SQL.",
}
"""Each subcommand's one-line help; its code is `tcpwin.cli.fleet_NAME`, as `LazyGroup` says."""
_OBJECTS = {"show": "show_"}


class _Group(LazyGroup):
    subcommands = SUBCOMMANDS
    objects = _OBJECTS


@click.group(cls=_Group)
def fleet() -> None:
    """Measure many captures side by side, keep the results as one data set, and ask it in SQL."""
