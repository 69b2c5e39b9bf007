"""`tcpwin exchanges`: requests and answers, and whose time passed between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from tcpwin.cli.io import (
    ConnectionNumber,
    Output,
    check_connection,
    choose_output,
    colour_option,
    complain,
    progress,
    show,
    write_document,
    write_lines,
    write_table,
)
from tcpwin.cli.options import SELECTION, CaptureOptions, capture_options
from tcpwin.errors import SourceError

if TYPE_CHECKING:
    from tcpwin.analysis import Exchanges, ExchangeSummary, GroupName
    from tcpwin.limits import Analysis

SCHEMA = "tcpwin/exchanges/1"
SHOWN = 20
"""Default of --limit."""
_REASONS = {
    "interleaved": "both sides send at any time",
    "overlapping": "answers cannot be assigned to their requests: several were under way, perhaps in another order",
    "scheduled": "the server sends at even times, whenever it was asked",
    "one_sided": "neither side answers the other",
    "known": "no request was answered",
}
_TEXTS = ("name", "client", "server", "target", "text")


@click.command()
@click.argument("captures", nargs=-1, required=True, type=click.Path(allow_dash=True), metavar="FILE...")
@click.option("--connection", type=ConnectionNumber(), metavar="N", help="Only the exchanges of connection N.")
@click.option(
    "--by",
    type=click.Choice(["port", "host", "connection", "path"]),
    help="Summarise by the server's address and port (the default), by pair of hosts, by connection, or by HTTP method "
    "and path. CSV and Parquet then contain the groups.",
)
@click.option("--json", "as_json", is_flag=True, help="Write groups and exchanges as JSON.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=SHOWN,
    show_default=True,
    metavar="N",
    help="Show at most N groups and the N longest exchanges.",
)
@capture_options("window_scales", "threads", *SELECTION)
@click.option(
    "-o",
    "--output",
    "out",
    type=click.Path(dir_okay=False),
    metavar="OUT",
    help="Write to this file, as .csv, .jsonl, .parquet, .arrow, .json or text.",
)
@colour_option
def exchanges(
    captures: tuple[str, ...],
    connection: int | None,
    by: GroupName | None,
    as_json: bool,
    limit: int,
    out: str | None,
    options: CaptureOptions,
    colour: str,
) -> None:
    """Show requests and answers, and the time that the server, the client and the path took."""
    from tcpwin.analysis import group_exchanges, list_exchanges

    output = choose_output(None, as_json, out, captures)
    analysis = options.analyze(captures, keep=True)
    check_connection(connection, len(analysis))
    chosen = None if connection is None else [connection]
    with progress(analysis._source) as report_progress:
        found = list_exchanges(analysis, chosen, targets=by == "path", progress=report_progress)
    if not found.table.height:
        raise SourceError(f"{analysis.name}: no exchanges: {_reason(analysis, connection)}")
    if by == "path" and not any(target is not None for target in found.table.coded("target").words):  # type: ignore[union-attr]
        raise SourceError(f"{analysis.name}: no HTTP request was captured: encrypted, truncated, or another protocol")
    summary = group_exchanges(analysis, found, by or ("port" if connection is None else "connection"))
    _write(found, summary, output, by is not None, limit, colour)
    if output.form not in ("json", "table") and (found.connections_omitted or found.exchanges_omitted):
        left = f"{found.connections_omitted:,} connections and {found.exchanges_omitted:,} exchanges"
        complain(f"warning: {left} not listed: too many to hold in memory")


def _write(
    found: Exchanges, summary: ExchangeSummary, output: Output, has_groups: bool, limit: int, colour: str
) -> None:
    if output.form == "table":
        from tcpwin.cli.io import plain_lines
        from tcpwin.render import render_exchanges

        blocks = render_exchanges(found, summary, limit=limit)
        if output.path is None:
            show(blocks, colour)
        else:
            write_lines(plain_lines(blocks), output)
    elif output.form == "json":
        write_document(SCHEMA, "exchanges", found.table.rows(), lambda: _facts(summary), output)
    elif has_groups:
        rows = ({**group.to_dict(), "slow_frames": " ".join(map(str, group.slow_frames))} for group in summary.groups)
        write_table(rows, _group_kinds(), output)
    else:
        write_table(found.table.rows(), dict.fromkeys(found.table, "int"), output)


def _facts(summary: ExchangeSummary) -> dict[str, Any]:
    """Return the end of the JSON document."""
    groups: Iterator[dict[str, Any]] = (group.to_dict() for group in summary.groups)
    return {
        "by": summary.by,
        "groups": groups,
        "groups_omitted": summary.groups_omitted,
        "connections": summary.connections,
        "connections_omitted": summary.connections_omitted,
        "exchanges_omitted": summary.exchanges_omitted,
    }


def _group_kinds() -> dict[str, str]:
    from tcpwin.analysis import ExchangeGroup

    kinds = {each.name: "str" if each.name in (*_TEXTS, "slow_frames") else "int" for each in fields(ExchangeGroup)}
    return {"name": "str", **kinds, "slow_share": "float", "text": "str"}


def _reason(analysis: Analysis, connection: int | None) -> str:
    """Return why nothing is listed."""
    if connection is not None:
        return f"on connection {connection} {_REASONS[analysis.connections[connection].turns_state]}"
    states = set(analysis.connections.column("turns_state").tolist())
    if not states:
        return "no connection"
    return "; ".join(_REASONS[state] for state in sorted(states))
