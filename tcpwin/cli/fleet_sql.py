"""`tcpwin fleet sql`: a data set asked in SQL."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from itertools import islice
from typing import Any

import click

from tcpwin.cli.terminal import colour_option, show

SHOWN = 100
"""Rows of a table, where --limit is not given."""


@click.command()
@click.argument("dataset", type=click.Path())
@click.argument("query")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help=f"Show at most N rows; a table {SHOWN}.")
@click.option("--json", "form", flag_value="json", help="Write the rows as JSON.")
@click.option("--csv", "form", flag_value="csv", help="Write the rows as CSV.")
@colour_option
def sql(dataset: str, query: str, limit: int | None, form: str | None, colour: str) -> None:
    """Ask the data set a question in DuckDB's SQL, as 'SELECT verdict.limit, count(*) FROM connections GROUP BY 1'.

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
    """A value as a table has it."""
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
