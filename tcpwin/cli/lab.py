"""`tcpwin lab`: the reference lab, one subcommand a file."""

from __future__ import annotations

import click

from tcpwin.cli.lazy_group import LazyGroup

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
"""Each subcommand's one-line help; its code is `tcpwin.cli.lab_NAME`, as `LazyGroup` says."""
_OBJECTS = {"list": "list_"}


class _Group(LazyGroup):
    subcommands = SUBCOMMANDS
    objects = _OBJECTS


@click.group(cls=_Group)
def lab() -> None:
    """Run published experiments: on two hosts of yours, or in a real Linux kernel with virtual time."""
