"""`tcpwin analyze`: the main analysis in the terminal."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tcpwin.cli.io import ConnectionNumber, Output, check_connection, colour_option, complain, show
from tcpwin.cli.options import CaptureOptions, WithSnapshots, capture_options
from tcpwin.cli.program import EXIT_PROBLEM
from tcpwin.cli.several import (
    Piece,
    answer_each,
    captures_document,
    exit_status,
    hint_of_pieces,
    merge_option,
    separate,
    warn_of,
)
from tcpwin.sources import public_name

if TYPE_CHECKING:
    from tcpwin.limits import Analysis
    from tcpwin.render import CaptureRow

CONNECTIONS_SHOWN = 10
"""Default of --limit."""


def _names(_ctx: click.Context, _: click.Parameter, text: str | None) -> tuple[str, ...] | None:
    """Split names, and refuse unknown ones before reading anything."""
    if text is None:
        return None
    from difflib import get_close_matches

    from tcpwin.analysis import field_names

    names = tuple(filter(None, (name.strip() for name in text.split(","))))
    known = [*field_names(), "all"]
    if not names:
        raise click.BadParameter("names no field")
    for name in names:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else "`tcpwin fields` lists them."
            raise click.BadParameter(f"no field or group is called {name[:60]!r}: {hint}")
    return names


@click.command(cls=WithSnapshots)
@click.argument("captures", nargs=-1, required=True, type=click.Path(allow_dash=True), metavar="FILE...")
@capture_options()
@merge_option
@click.option(
    "--json", "as_json", is_flag=True, help="Write the analysis of all connections as JSON; see `tcpwin fields`."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "jsonl"]),
    help="json is --json; jsonl has a line for each connection.",
)
@click.option(
    "--fields",
    metavar="NAME,...",
    callback=_names,
    help="With JSON, only these fields and groups of `tcpwin fields`, or all; default: groups that occurred.",
)
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=0),
    help=f"Show at most N connections, {CONNECTIONS_SHOWN} by default; with several captures, at most N captures.",
)
@click.option(
    "--connection",
    type=ConnectionNumber(),
    metavar="N",
    help="Show connection N in full; with --json, also its events.",
)
@click.option("--check", is_flag=True, help="Exit with 1 if a connection has a problem.")
@colour_option
def analyze(
    captures: tuple[str, ...],
    options: CaptureOptions,
    merge: bool,
    as_json: bool,
    form: str | None,
    fields: tuple[str, ...] | None,
    limit: int | None,
    connection: int | None,
    check: bool,
    colour: str,
) -> int:
    """Show what limited each connection, what that cost and what to change: the worst connections first.

    FILE is a pcap or pcapng capture, plain or compressed (gzip, zstd, lz4); - reads standard input. A folder, .zip or
    .tar.gz is a bundle: a capture and the snapshots of its hosts. Several captures, or a folder of them, are analysed
    separately and shown as a table, worst first; --merge reads them as one.
    """
    if as_json and form not in (None, "json"):
        raise click.UsageError(f"--json and --format {form} exclude each other")
    form = "json" if as_json else form or "text"
    if fields is not None and form == "text":
        raise click.UsageError("--fields goes with --json or --format jsonl")
    if form == "jsonl" and connection is not None:
        raise click.UsageError("--connection goes with --json: one connection is one object")
    files = separate(captures, options, merge=merge)
    if files:
        if form == "jsonl":
            raise click.UsageError("--format jsonl is for one capture: name one, or use --merge")
        if connection is not None:
            raise click.UsageError("--connection is for one capture: name one, or use --merge")
        if form == "json":
            problems, failures = _write_documents(files, options, fields)
        else:
            problems, failures = _show_table(files, options, limit, colour)
        return exit_status(check and problems > 0, failures)
    from tcpwin.render import render_blocks, render_connection

    follow = None if connection is None else [connection]
    analysis = options.analyze(captures, follow=follow)
    check_connection(connection, len(analysis))
    if form == "json":
        everything = ("all",) if connection is not None else None
        analysis.write_json(
            sys.stdout, connection=connection, events=connection is not None, fields=fields or everything
        )
    elif form == "jsonl":
        analysis.write_json_lines(sys.stdout, fields=fields)
    elif connection is not None:
        show([render_connection(analysis.connections[connection]).splitlines()], colour)
    else:
        show(render_blocks(analysis, limit=CONNECTIONS_SHOWN if limit is None else limit), colour)
    if form == "text":
        for each in analysis.findings.failed:
            complain(f"warning: {each}")
    if not check:
        return 0
    is_problem = analysis.connections[connection].verdict.is_problem if connection is not None else analysis.problems
    return EXIT_PROBLEM if is_problem else 0


def _show_table(files: list[str], options: CaptureOptions, limit: int | None, colour: str) -> tuple[int, int]:
    """Return how many connections have a problem, and how many captures could not be read."""
    from tcpwin.render import render_captures

    rows: list[CaptureRow] = []
    pieces: list[Piece] = []
    for answered in answer_each(files, _row, options):
        warn_of(answered)
        if answered.answer is not None:
            row, piece = answered.answer
            rows.append(row)
            pieces.append(piece)
    failures = len(files) - len(rows)
    show(render_captures(rows, failures, limit), colour)
    if not failures:
        hint_of_pieces(pieces)
    return sum(row.problems for row in rows), failures


def _row(analysis: Analysis, file: str, _: object) -> tuple[CaptureRow, Piece]:
    from tcpwin.render import capture_row

    return capture_row(analysis, public_name(file)), Piece.of(analysis, public_name(file))


def _write_documents(files: list[str], options: CaptureOptions, fields: tuple[str, ...] | None) -> tuple[int, int]:
    """Write one document that contains each capture's own document; return the same counts as `_show_table`."""
    from tempfile import TemporaryDirectory

    problems = failures = 0
    with TemporaryDirectory(prefix="tcpwin-") as folder, captures_document(Output("json", None)) as add:
        for answered in answer_each(files, partial(_document, folder=Path(folder), fields=fields), options):
            warn_of(answered)
            count, path = answered.answer or (0, None)
            problems += count
            failures += answered.answer is None
            add(answered, path)
    return problems, failures


def _document(
    analysis: Analysis, _file: str, _: object, *, folder: Path, fields: tuple[str, ...] | None
) -> tuple[int, Path]:
    from uuid import uuid4

    path = folder / uuid4().hex
    with path.open("w", encoding="utf-8", errors="surrogateescape") as document:
        analysis.write_json(document, fields=fields)
    return len(analysis.problems), path
