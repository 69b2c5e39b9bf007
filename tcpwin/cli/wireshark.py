"""`tcpwin wireshark`: an index of a capture and the plugin that shows it as fields."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcpwin.cli.io import ConnectionNumber, check_connection, complain, progress, spare_captures
from tcpwin.cli.lazy_group import LazyGroup
from tcpwin.cli.options import SNAPSHOTS, CaptureOptions, WithSnapshots, capture_options
from tcpwin.errors import OutputError
from tcpwin.output import open_whole

if TYPE_CHECKING:
    from tcpwin.render.wireshark import IndexedCapture

SUBCOMMANDS = {
    "index": "Write the index of a capture, from which Wireshark reads the fields.",
    "install": "Write the plugin where Wireshark and tshark look for it.",
    "open": "Open a connection of an indexed capture in the browser.",
}
"""Each subcommand's one-line help."""
_OBJECTS = {"open": "open_"}


class _Group(LazyGroup):
    subcommands = SUBCOMMANDS
    objects = _OBJECTS


@click.group(cls=_Group)
def wireshark() -> None:
    """Show results in Wireshark as fields such as tcpwin.limit, for display filters, columns and I/O graphs."""


SCHEMA = "tcpwin/wireshark-index/1"


@click.command(cls=WithSnapshots)
@click.argument("captures", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False), metavar="FILE...")
@capture_options(*SNAPSHOTS)
@click.option("--json", "as_json", is_flag=True, help="Write a summary as JSON.")
@click.option(
    "-o", "--output", "out", type=click.Path(dir_okay=False), metavar="OUT", help="Index; default: FILE.tcpwin."
)
def index(
    captures: tuple[str, ...],
    options: CaptureOptions,
    as_json: bool,
    out: str | None,
) -> None:
    """Write the index of a capture: connection, bytes in flight, window, cause and events of each packet.

    The index is FILE.tcpwin, next to FILE, which is not changed; each of several files gets its own. When Wireshark or
    tshark opens FILE on this machine, the plugin finds the index.
    """
    from tcpwin.render.wireshark import ENDING, make_known, write_index
    from tcpwin.units import count_text, name_text

    if out is not None and len(captures) > 1:
        raise click.UsageError("-o is for one capture: with several, each index is written next to its capture")
    written: list[dict[str, Any]] = []
    for capture in captures:
        place = Path(out or f"{capture}{ENDING}")
        spare_captures(captures, str(place))
        analysis = options.analyze((capture,), keep=True)
        with progress(analysis._source) as report_progress:
            made = write_index(analysis, Path(capture), place, progress=report_progress)
        if made.first_time_ns is None:
            complain(f"warning: {capture} has no times: name its index in Wireshark's preference tcpwin.index")
        else:
            make_known(place, made.first_time_ns)
        written.append(_described(made, place))
        if not as_json:
            packets, connections = count_text(made.packets, "packet"), count_text(made.connections, "connection")
            click.echo(f"{name_text(str(place))}: {packets}, {connections}")
    if as_json:
        click.echo(json.dumps({"schema": SCHEMA, "indexes": written}))


def _described(made: IndexedCapture, place: Path) -> dict[str, Any]:
    return {"file": str(place), **asdict(made), "path": str(made.path)}


_NAME = "tcpwin.lua"


@click.command()
@click.option("--print", "is_printed", is_flag=True, help="Write the plugin to standard output.")
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False),
    metavar="FOLDER",
    help="Folder; default: your folder for Lua plugins.",
)
def install(is_printed: bool, folder: str | None) -> None:
    """Write the plugin to the folder where Wireshark and tshark look for a user's plugins.

    It starts the tcpwin that wrote it: install it again after moving or upgrading tcpwin.
    """
    from tcpwin.render.wireshark import default_folder, plugin_text
    from tcpwin.units import name_text

    if is_printed and folder is not None:
        raise click.UsageError("--print and --to exclude each other")
    text = plugin_text()
    if is_printed:
        click.echo(text, nl=False)
        return
    place = default_folder() if folder is None else Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    with open_whole(place / _NAME, errors="surrogateescape") as file:
        file.write(text)
    click.echo(f"{name_text(str(place / _NAME))}: Wireshark and tshark load it when they start next")


@click.command("open")
@click.argument("index", type=click.Path(exists=True, dir_okay=False), metavar="INDEX")
@click.argument("connection", type=ConnectionNumber(), metavar="N")
def open_(index: str, connection: int) -> None:
    """Write a report on connection N of the capture that INDEX belongs to, and open it in the browser."""
    import webbrowser

    from tcpwin.render.report import Report
    from tcpwin.render.wireshark import read_indexed

    capture = read_indexed(Path(index))
    check_connection(connection, capture.connections)
    analysis = CaptureOptions().analyze((str(capture.path),), keep=True)
    check_connection(connection, len(analysis))
    page = Path(tempfile.mkdtemp(prefix="tcpwin-")) / f"connection-{connection}.html"
    Report(analysis, limit=1, chosen=(connection,)).write(page)
    click.echo(str(page))
    if not webbrowser.open(page.as_uri()):
        raise OutputError(f"no browser could be started: open {page}")
