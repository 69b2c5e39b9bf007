"""`tcpwin wireshark index`: what the plugin reads of a capture."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcpwin.cli.inputs import progress, spare_captures
from tcpwin.cli.options import SNAPSHOTS, CaptureOptions, WithSnapshots, capture_options
from tcpwin.cli.program import complain

if TYPE_CHECKING:
    from tcpwin.render.wireshark import IndexedCapture

SCHEMA = "tcpwin/wireshark-index/1"


@click.command(cls=WithSnapshots)
@click.argument("captures", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False), metavar="FILE...")
@capture_options(*SNAPSHOTS)
@click.option("--json", "as_json", is_flag=True, help="Say what was written as JSON.")
@click.option(
    "-o", "--output", "out", type=click.Path(dir_okay=False), metavar="OUT", help="Index; default: FILE.tcpwin."
)
def index(
    captures: tuple[str, ...],
    options: CaptureOptions,
    as_json: bool,
    out: str | None,
) -> None:
    """Write the index of a capture: of each packet its connection, bytes in flight, window, cause and events.

    It stands beside FILE, which is not changed, as FILE.tcpwin; of several, each has its own. When Wireshark or tshark
    opens FILE on this machine, the plugin finds the index.
    """
    from tcpwin.render.wireshark import ENDING, make_known, write_index
    from tcpwin.units import count_text, name_text

    if out is not None and len(captures) > 1:
        raise click.UsageError("-o is for one capture: each of several has an index beside it")
    written: list[dict[str, Any]] = []
    for capture in captures:
        place = Path(out or f"{capture}{ENDING}")
        spare_captures(captures, str(place))
        analysis = options.analyze((capture,), keep=True)
        with progress(analysis._source) as tell:
            made = write_index(analysis, Path(capture), place, progress=tell)
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
