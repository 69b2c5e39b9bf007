"""`tcpwin fleet show`: what a data set holds, and what limited its connections."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from tcpwin.cli.fleet_sql import cell_text
from tcpwin.cli.terminal import colour_option, show

if TYPE_CHECKING:
    from tcpwin.render import ConnectionTable

BY = ("limit", "pair", "subnet", "port", "hour", "day", "site", "kernel")
SCHEMA = "tcpwin/fleet-show/1"


@click.command("show")
@click.argument("dataset", type=click.Path())
@click.option("--by", type=click.Choice(BY), multiple=True, help="Limits by this; may be repeated.")
@click.option("--limit", type=click.IntRange(min=0), default=10, show_default=True, help="Rows of each table.")
@click.option("--json", "as_json", is_flag=True, help="Write it as JSON, limits by everything.")
@colour_option
def show_(dataset: str, by: tuple[str, ...], limit: int, as_json: bool, colour: str) -> None:
    """Show what limited the connections of a data set, the worst of them, and captures that could not be read."""
    from tcpwin.fleet import Dataset, asked, limits_by, totals, unreadable, worst_connections

    groups = by or (BY if as_json else ("limit", "pair"))
    with asked(Dataset.open(dataset)) as database:
        told = totals(database)
        limits = {group: limits_by(database, group, limit) for group in groups}
        worst = worst_connections(database, limit)
        errors = unreadable(database, limit)
    if as_json:
        document = {"schema": SCHEMA, "totals": told, "limits": limits, "worst": worst, "unreadable": errors}
        click.echo(json.dumps(document, indent=1))
        return
    blocks: list[list[str] | ConnectionTable] = [[_headline(told)]]
    for group, rows in limits.items():
        blocks += [["", f"By {group}"], _table(rows)]
    if worst:
        blocks.append(["", "The worst connections"])
        blocks += [_worst_lines(row) for row in worst]
    if errors:
        blocks += [["", f"Captures that could not be read: {told['unreadable']:,}"]]
        blocks += [[_error_line(row) for row in errors]]
    show(blocks, colour)


def _headline(told: dict[str, Any]) -> str:
    from tcpwin.units import count_text

    counts = (count_text(told[name], name.removesuffix("s")) for name in ("captures", "packets", "connections"))
    return f"{', '.join(counts)}, {told['problems']:,} with a problem, {told['unreadable']:,} captures not readable."


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
