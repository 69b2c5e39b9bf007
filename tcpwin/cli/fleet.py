"""`tcpwin fleet`: many captures as one data set."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from tcpwin.cli.io import colour_option, complain, show
from tcpwin.cli.lazy_group import LazyGroup
from tcpwin.cli.program import EXIT_UNREADABLE

if TYPE_CHECKING:
    from tcpwin.fleet import Done, Outcome, Tell
    from tcpwin.render import ConnectionTable

SUBCOMMANDS = {
    "run": "Measure many captures into a data set of Parquet files.",
    "show": "Show what limited its connections, and the worst of them.",
    "sql": "Query it in SQL.",
}
"""Each subcommand's one-line help."""
_OBJECTS = {"show": "show_"}


class _Group(LazyGroup):
    subcommands = SUBCOMMANDS
    objects = _OBJECTS


@click.group(cls=_Group)
def fleet() -> None:
    """Measure many captures side by side, store the results as one data set, and query it in SQL."""


TABLES = ("events", "series")


@click.command()
@click.argument("sources", nargs=-1, required=True, metavar="[SITE=]SOURCE...")
@click.option("-o", "--output", "dataset", required=True, metavar="DATASET", help="Folder of the data set.")
@click.option("--site", metavar="NAME", help="Site of the captures; default: the name of the folder each is in.")
@click.option(
    "--also",
    type=click.Choice(TABLES),
    multiple=True,
    help="Also write this table, for the worst connections with a problem; may be repeated.",
)
@click.option(
    "--workers", type=click.IntRange(min=1), metavar="N", help="Number of processes; default: one per processor."
)
@click.option("--scheduler", metavar="ADDRESS", help="Let a Dask cluster measure them: tcp://HOST:PORT.")
@click.option("--again", is_flag=True, help="Also measure captures that were already measured.")
@click.option("--json", "as_json", is_flag=True, help="Write the summary as JSON.")
def run(
    sources: tuple[str, ...],
    dataset: str,
    site: str | None,
    also: tuple[str, ...],
    workers: int | None,
    scheduler: str | None,
    again: bool,
    as_json: bool,
) -> int:
    """Measure every capture of SOURCE, and store the results in a data set.

    SOURCE is a capture, a folder (all captures below it, each with the snapshots next to it), an archive, a quoted
    pattern such as 'captures/**/*.pcap', or an address (s3://, gs://, az://, https://). Captures already in the data
    set are read again only if they have changed: run the same command again to continue, or with more sources to add
    them.
    """
    from tcpwin.fleet import run as measure_all

    if workers is not None and scheduler is not None:
        raise click.UsageError("--workers sets processes of this machine; the cluster of --scheduler has its own")
    with _shown() as tell:
        done = measure_all(
            sources,
            dataset,
            site=site,
            also=also,
            workers=workers,
            scheduler=scheduler,
            again=again,
            tell=tell,
        )
    if as_json:
        click.echo(json.dumps(done.document(), indent=1))
    else:
        for name, error in done.failed.items():
            complain(error if name in error else f"{name}: {error}")
        click.echo("\n".join(_done_lines(done)))
    return EXIT_UNREADABLE if done.failed else 0


def _done_lines(done: Done) -> Iterator[str]:
    from tcpwin.units import bytes_text, count_text, time_text

    captures = count_text(done.captures, "capture")
    counts = f"{done.measured:,} measured, {done.unchanged:,} unchanged, {len(done.failed):,} unreadable"
    yield f"{captures} in {done.dataset}: {counts}."
    if done.measured:
        took = time_text(done.elapsed_ns)
        carried = f"{count_text(done.packets, 'packet')} ({bytes_text(done.file_bytes)})"
        yield f"{carried}, {count_text(done.connections, 'connection')}, {done.problems:,} with a problem; in {took}."


@contextmanager
def _shown() -> Iterator[Tell | None]:
    """Show a bar on a terminal's stderr."""
    if not sys.stderr.isatty():
        yield None
        return
    bars: list[click._termui_impl.ProgressBar[int]] = []

    def tell(_: Outcome, __: int, count: int) -> None:
        if not bars:
            bars.append(click.progressbar(length=count, label="measuring captures", file=sys.stderr, show_pos=True))
            bars[0].render_progress()
        bars[0].update(1)

    try:
        yield tell
    finally:
        for bar in bars:
            bar.render_finish()


BY = ("limit", "pair", "subnet", "port", "hour", "day", "site", "kernel")
SCHEMA = "tcpwin/fleet-show/1"


@click.command("show")
@click.argument("dataset", type=click.Path())
@click.option("--by", type=click.Choice(BY), multiple=True, help="Group limits by this; may be repeated.")
@click.option("--limit", type=click.IntRange(min=0), default=10, show_default=True, help="Rows of each table.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON, with limits by every grouping.")
@colour_option
def show_(dataset: str, by: tuple[str, ...], limit: int, as_json: bool, colour: str) -> None:
    """Show the limits of a data set's connections, the worst connections, and captures that could not be read."""
    from tcpwin.fleet import Dataset, asked, limits_by, totals, unreadable, worst_connections

    groups = by or (BY if as_json else ("limit", "pair"))
    with asked(Dataset.open(dataset)) as database:
        sums = totals(database)
        limits = {group: limits_by(database, group, limit) for group in groups}
        worst = worst_connections(database, limit)
        errors = unreadable(database, limit)
    if as_json:
        document = {"schema": SCHEMA, "totals": sums, "limits": limits, "worst": worst, "unreadable": errors}
        click.echo(json.dumps(document, indent=1))
        return
    blocks: list[list[str] | ConnectionTable] = [[_headline(sums)]]
    for group, rows in limits.items():
        blocks += [["", f"By {group}"], _table(rows)]
    if worst:
        blocks.append(["", "The worst connections"])
        blocks += [_worst_lines(row) for row in worst]
    if errors:
        blocks += [["", f"Captures that could not be read: {sums['unreadable']:,}"]]
        blocks += [[_error_line(row) for row in errors]]
    show(blocks, colour)


def _headline(sums: dict[str, Any]) -> str:
    from tcpwin.units import count_text

    counts = (count_text(sums[name], name.removesuffix("s")) for name in ("captures", "packets", "connections"))
    return f"{', '.join(counts)}, {sums['problems']:,} with a problem, {sums['unreadable']:,} captures unreadable."


def _table(rows: Sequence[dict[str, Any]]) -> ConnectionTable:
    from tcpwin.limits import LIMIT_NAMES
    from tcpwin.render import ConnectionTable
    from tcpwin.units import time_text

    texts: dict[str, Callable[[Any], str]] = {
        "lost_ns": lambda ns: time_text(ns) if ns else "-",
        "limit": lambda limit: LIMIT_NAMES.get(limit, "-"),
        "problems": "{:,}".format,
        "connections": "{:,}".format,
    }
    names = {"lost_ns": "time lost", "problems": "with a problem", "limit": "worst limited by"}
    heads = {names.get(name, name): name in ("connections", "problems", "lost_ns") for row in rows[:1] for name in row}
    cells = [tuple(texts.get(name, cell_text)(value) for name, value in row.items()) for row in rows]
    return ConnectionTable(heads, cells, [bool(row["problems"]) for row in rows])


def _worst_lines(row: dict[str, Any]) -> list[str]:
    from tcpwin.units import name_text

    lines = [f"{name_text(row['capture'])}, connection {row['connection']} ({row['a']} → {row['b']}): {row['text']}"]
    return [*lines, f"    Fix: {name_text(row['fix'])}"] if row["fix"] else lines


def _error_line(row: dict[str, Any]) -> str:
    from tcpwin.units import name_text

    return name_text(row["error"] if row["name"] in row["error"] else f"{row['name']}: {row['error']}")


SHOWN = 100
"""Default of --limit for a table."""


@click.command()
@click.argument("dataset", type=click.Path())
@click.argument("query")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help=f"Show at most N rows; a table {SHOWN}.")
@click.option("--json", "form", flag_value="json", help="Write the rows as JSON.")
@click.option("--csv", "form", flag_value="csv", help="Write the rows as CSV.")
@colour_option
def sql(dataset: str, query: str, limit: int | None, form: str | None, colour: str) -> None:
    """Query the data set in DuckDB's SQL, such as 'SELECT verdict.limit, count(*) FROM connections GROUP BY 1'.

    Tables: captures, connections, findings, budgets, events, series; directions has a row for each direction of a
    connection, with sender and receiver; subnet(address) is a function.
    """
    from tcpwin.fleet import Dataset, ask, asked

    with asked(Dataset.open(dataset)) as database:
        names, rows = ask(database, query)
        if form == "json":
            _write_json(names, islice(rows, limit))
        elif form == "csv":
            writer = csv.writer(sys.stdout)
            writer.writerow(names)
            writer.writerows(islice(rows, limit))
        else:
            _show(names, rows, SHOWN if limit is None else limit, colour)


def _write_json(names: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
    before = "["
    for row in rows:
        click.echo(f"{before}{json.dumps(dict(zip(names, row, strict=True)), default=_plain)}", nl=False)
        before = ",\n"
    click.echo("]" if before != "[" else "[]")


def _show(names: Sequence[str], rows: Iterator[tuple[Any, ...]], limit: int, colour: str) -> None:
    from tcpwin.render import ConnectionTable

    shown = list(islice(rows, limit))
    left = next(rows, None) is not None
    heads = {name: all(isinstance(row[place], int | float | None) for row in shown) for place, name in enumerate(names)}
    cells = [tuple(map(cell_text, row)) for row in shown]
    lines = [f"More rows are not shown: --limit N shows more than {limit:,}."] if left else []
    show([ConnectionTable(heads, cells, [False] * len(cells)), lines], colour)


def cell_text(value: Any) -> str:
    """Format a value for a table."""
    from tcpwin.units import name_text

    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case int():
            return str(value)
        case float():
            return f"{value:.6g}"
        case _:
            return name_text(str(value))


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else str(value)
