"""`tcpwin packets`: the per-segment table."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

import click

from tcpwin.cli import completion
from tcpwin.cli.io import ConnectionNumber, check_connection, complain, open_captures, progress, spare_captures
from tcpwin.cli.options import SELECTION, CaptureOptions, capture_options
from tcpwin.errors import OutputError, SourceError
from tcpwin.output import open_whole
from tcpwin.units import name_text

if TYPE_CHECKING:
    from tcpwin.analysis import Shifts
    from tcpwin.sources import Source


def _columns(_: click.Context, __: click.Parameter, names: str | None) -> tuple[str, ...] | None:
    if names is None:
        return None
    from tcpwin import _engine

    chosen = tuple(filter(None, names.split(",")))
    for name in chosen:
        if name not in _engine.ROW_COLUMNS:
            raise click.BadParameter(f"unknown column {name[:60]}: choose from {', '.join(_engine.ROW_COLUMNS)}")
    if not chosen:
        raise click.BadParameter("name at least one")
    return chosen


@click.command()
@click.argument("captures", nargs=-1, required=True, type=click.Path(allow_dash=True), metavar="FILE...")
@click.option("--connection", type=ConnectionNumber(), metavar="N", help="Only segments of connection N.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "jsonl", "parquet"]),
    help="Format; default: csv, or by the extension of OUT.",
)
@click.option(
    "--columns",
    callback=_columns,
    metavar="NAMES",
    shell_complete=completion.columns,
    help="Only these columns: frame,time_ns,window.",
)
@capture_options("window_scales", *SELECTION)
@click.option("-o", "--output", "out", type=click.Path(dir_okay=False), metavar="OUT", help="Write to this file.")
def packets(
    captures: tuple[str, ...],
    connection: int | None,
    form: str | None,
    columns: tuple[str, ...] | None,
    out: str | None,
    options: CaptureOptions,
) -> None:
    """Write one row per TCP segment: sequence numbers, windows in bytes, bytes in flight and events."""
    from tcpwin import _engine
    from tcpwin.analysis import Capture

    out = None if out == "-" else out
    form = form or _format_of(out)
    spare_captures(captures, out)
    if form == "parquet" and out is None:
        raise click.UsageError("parquet is binary: name a file with -o OUT")
    source, shifts = _source_of(captures, options)
    with _opened(out) as file:
        with progress(source) as report_progress:
            _, count, facts = _engine.write_rows(
                source.open(),
                file,
                format=form,
                name=source.name,
                only=connection,
                columns=columns,
                shifts=shifts,
                progress=report_progress,
            )
        if not count and options.selection:
            raise SourceError(
                f"{name_text(source.name)}: no TCP segment was selected: {name_text(str(options.selection))}"
            )
        check_connection(connection, count)
    for warning in Capture.warnings_of(facts) if shifts is None else ():
        complain(f"warning: {warning}")


@contextmanager
def _opened(out: str | None) -> Iterator[IO[bytes]]:
    if out is not None:
        with open_whole(out, is_binary=True) as file:
            yield file
        return
    try:
        yield sys.stdout.buffer
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"standard output: {error.strerror or error}") from None


def _source_of(captures: tuple[str, ...], options: CaptureOptions) -> tuple[Source, Shifts | None]:
    """Return the captures and the shifts given by hand, whose connections are found by a first reading."""
    if not options.window_scales:
        return options.select(open_captures(captures)), None
    analysis = options.analyze(captures)
    return analysis._source, analysis._shifts


def _format_of(out: str | None) -> str:
    ending = (out or "").rpartition(".")[2].lower()
    return ending if ending in ("jsonl", "parquet") else "csv"
