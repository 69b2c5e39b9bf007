"""`tcpwin mcp`: captures of a folder, for agents."""

from __future__ import annotations

import sys

import click

from tcpwin.errors import need


@click.command()
@click.argument("folder", default=".", type=click.Path(exists=True, file_okay=False), metavar="[FOLDER]")
@click.option(
    "--write",
    "out",
    type=click.Path(exists=True, file_okay=False),
    metavar="OUT",
    help="Let agents write slices to this folder; by default nothing is written.",
)
def mcp(folder: str, out: str | None) -> None:
    """Serve the captures in FOLDER to an agent over the Model Context Protocol, on standard input and output.

    FOLDER is the current one by default; nothing outside of it is read. Configure the agent with the command line
    `tcpwin mcp FOLDER`, which it then starts itself.
    """
    need("a server for agents", "mcp", extra="mcp")
    if sys.stdin.isatty():
        raise click.UsageError("standard input is a terminal: an agent starts this command, and talks to it")
    from tcpwin.agents import Folder, serve

    serve(Folder(folder), None if out is None else Folder(out))
