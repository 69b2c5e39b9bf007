"""Write measurements as columns: connections and findings as Parquet, series as arrays that can be memory-mapped.

Requests filter, sort and slice the files without loading all of them.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars

from tcpwin.analysis import DIRECTIONS, SERIES_NAMES, Series, View
from tcpwin.limits import VERDICT_FIELDS, Analysis, Connection, Severity, describe_finding, plain, verdict_columns
from tcpwin.model import marked_fields, text_fields
from tcpwin.render import FindingViews
from tcpwin_web.results import layout

ROW_GROUP = 50_000
OF_CONNECTIONS = marked_fields("connection", "list")
OF_DIRECTIONS = marked_fields("direction", "list")
OF_BOTH = ("goodput_bps", "retransmissions")
"""Per connection: the rate of the direction with more data, and the retransmissions of both."""
VERDICT = "verdict."
"""Prefix of the columns of a connection's verdict."""
OF_VERDICTS = tuple(f"{VERDICT}{name}" for name in VERDICT_FIELDS)
FLAGS = {"verdict.is_problem"}
FINDINGS = "findings"
COLUMNS = (
    *OF_CONNECTIONS,
    *OF_BOTH,
    *OF_VERDICTS,
    FINDINGS,
    *(f"{side}.{name}" for side in DIRECTIONS for name in OF_DIRECTIONS),
)
TEXTS = {
    *text_fields("connection"),
    *(f"{side}.{name}" for side in DIRECTIONS for name in text_fields("direction")),
    *(f"{VERDICT}{name}" for name in ("limit", "second_limit", "confidence", "owner", "side", "direction", "also")),
    *(f"{VERDICT}{name}" for name in ("fix", "text")),
}
_FINDINGS_SCHEMA = {
    "position": polars.Int64,
    "code": polars.String,
    "severity": polars.Int8,
    "connection": polars.Int64,
    "cost_ns": polars.Int64,
    "owner": polars.String,
    "document": polars.String,
    "view": polars.String,
}


def write_connections(analysis: Analysis, path: Path) -> None:
    """Write the columns that lists show, for all connections."""
    names = [*OF_CONNECTIONS, *(f"{side}.{name}" for side in DIRECTIONS for name in OF_DIRECTIONS)]
    frame = analysis.connections.table(names).to_polars()
    verdicts = verdict_columns(analysis).to_polars().rename(lambda name: f"{VERDICT}{name}")
    verdicts = verdicts.with_columns(polars.col(name).cast(polars.String) for name in OF_VERDICTS if name in TEXTS)
    found: dict[int, int] = {}
    for each in analysis.findings:
        if each.connection is not None:
            found[each.connection] = found.get(each.connection, 0) + 1
    counts = polars.DataFrame(
        {"id": list(found), FINDINGS: list(found.values())}, schema={"id": frame.schema["id"], FINDINGS: polars.Int64}
    )
    frame = (
        frame.hstack(verdicts)
        .join(counts, on="id", how="left", maintain_order="left")
        .with_columns(
            polars.col(FINDINGS).fill_null(0),
            polars.when(_data("a_to_b") >= _data("b_to_a"))
            .then("a_to_b.goodput_bps")
            .otherwise("b_to_a.goodput_bps")
            .alias("goodput_bps"),
            (polars.col("a_to_b.retransmissions") + polars.col("b_to_a.retransmissions")).alias("retransmissions"),
        )
    )
    frame.select(COLUMNS).write_parquet(path, compression="zstd", row_group_size=ROW_GROUP)


def _data(side: str) -> polars.Expr:
    """Data bytes of a direction: acknowledged, or sent if no ACK of it was captured."""
    return polars.max_horizontal(polars.col(f"{side}.acked_bytes").fill_null(0), f"{side}.payload_bytes")


def write_findings(analysis: Analysis, path: Path) -> None:
    """Write findings in order, each with its whole document and its sentences."""
    view = FindingViews(analysis, analysis.findings)
    described = ((describe_finding(each, analysis, view.verdict(each)), view(each)) for each in analysis.findings)
    rows = [
        {
            "position": position,
            "code": each["code"],
            "severity": int(Severity[str(each["severity"]).upper()]),
            "connection": each["connection"],
            "cost_ns": each["cost_ns"] or 0,
            "owner": each["owner"],
            "document": json.dumps(each),
            "view": json.dumps(plain(shown)),
        }
        for position, (each, shown) in enumerate(described)
    ]
    polars.DataFrame(rows, schema=_FINDINGS_SCHEMA).write_parquet(path, row_group_size=ROW_GROUP)


def write_series(view: View, folder: Path) -> None:
    """Write all series of a view into one run of columns, and the offset of each."""
    runs, parts, first = [], [], 0
    for side, name, series in _all_series(view):
        runs.append({"name": name, "side": side, "width_ns": series.width_ns, "first": first, "count": len(series)})
        first += len(series)
        parts.append(np.stack([getattr(series, value) for value in layout.VALUES]))
    (folder / layout.RUNS).write_text(json.dumps(runs))
    np.save(folder / layout.SERIES, np.concatenate(parts, axis=1))


def write_segments(connection: Connection, folder: Path) -> None:
    """Write the per-segment table of a connection."""
    frame = connection.segments().to_polars().drop("connection")
    frame.write_parquet(folder / layout.SEGMENTS, row_group_size=ROW_GROUP)
    np.save(folder / layout.SEGMENT_TIMES, frame.get_column("time_ns").to_numpy())


def _all_series(view: View) -> Iterator[tuple[str, str, Series]]:
    for side in DIRECTIONS:
        for name in SERIES_NAMES:
            yield side, name, view.series(name, direction=side)
