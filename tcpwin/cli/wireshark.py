"""`tcpwin wireshark`: fields in Wireshark, one subcommand a file."""

from __future__ import annotations

import click

from tcpwin.cli.lazy_group import LazyGroup

SUBCOMMANDS = {
    "index": "Write the index of a capture, from which Wireshark has the fields.",
    "install": "Write the plugin where Wireshark and tshark look for it.",
    "open": "Open a connection of an indexed capture in the browser.",
}
"""Each subcommand's one-line help; its code is `tcpwin.cli.wireshark_NAME`, as `LazyGroup` says."""
_OBJECTS = {"open": "open_"}


class _Group(LazyGroup):
    subcommands = SUBCOMMANDS
    objects = _OBJECTS


@click.group(cls=_Group)
def wireshark() -> None:
    """Bring what was found into Wireshark: fields as tcpwin.limit, for display filters, columns and I/O graphs."""
