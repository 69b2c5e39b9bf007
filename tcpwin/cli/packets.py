"""`tcpwin packets`: the per-segment table."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tcpwin.cli.inputs import ConnectionNumber, check_connection, open_captures, progress, spare_captures
from tcpwin.cli.program import complain
from tcpwin.errors import OutputError


@click.command()
@click.argument("captures", nargs=-1, required=True, type=click.Path(allow_dash=True), metavar="FILE...")
@click.option("--connection", type=ConnectionNumber(), metavar="N", help="Only segments of connection N.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "jsonl", "parquet"]),
    help="Format; default: csv, or by the ending of OUT.",
)
@click.option("-o", "--output", "out", type=click.Path(dir_okay=False), metavar="OUT", help="Write to this file.")
def packets(captures: tuple[str, ...], connection: int | None, form: str | None, out: str | None) -> None:
    """Write one row per TCP segment: sequence numbers, windows in bytes, bytes in flight and events."""
    from tcpwin import _engine
    from tcpwin.analysis import Capture

    out = None if out == "-" else out
    form = form or _format_of(out)
    source = open_captures(captures)
    spare_captures(captures, out)
    if form == "parquet":
        _write_parquet(captures, connection, out)
        return
    try:
        with progress(source) as tell:
            _, count, facts = _engine.write_rows(
                source.open(),
                sys.stdout.buffer if out is None else out,
                format=form,
                name=source.name,
                only=connection,
                progress=tell,
            )
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"{out or 'standard output'}: {error}") from None
    for warning in Capture.warnings_of(facts):
        complain(f"warning: {warning}")
    check_connection(connection, count)


def _format_of(out: str | None) -> str:
    ending = (out or "").rpartition(".")[2].lower()
    return ending if ending in ("jsonl", "parquet") else "csv"


def _write_parquet(captures: tuple[str, ...], connection: int | None, out: str | None) -> None:
    from tcpwin.analysis import measure

    if out is None:
        raise click.UsageError("parquet is binary: name a file with -o OUT")
    try:
        import polars  # noqa: F401
    except ImportError:
        raise OutputError("parquet needs polars: pip install 'tcpwin[tables]'") from None
    source = open_captures(captures)
    if captures == ("-",):
        from tcpwin.sources import FileSource

        source = FileSource(sys.stdin.buffer, name="standard input")
    analysis = measure(source)
    for warning in analysis.capture.warnings:
        complain(f"warning: {warning}")
    check_connection(connection, len(analysis))
    frame = analysis.segments(connection=connection).to_polars()
    with Path(out).open("wb") as file:
        frame.write_parquet(file)
