"""All connections as columns for a page: as many rows as fit, compressed.

In: a Report. Out: ConnectionTable. Columns are read whole, one after the other; the limit of a connection comes from
its verdict.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tcpwin.analysis import DIRECTIONS
from tcpwin.limits import CONFIDENCES, LIMIT_NAMES, LIMITS, Analysis, worst
from tcpwin.render.view.direction import is_burst

if TYPE_CHECKING:
    from tcpwin.render.report.report import Report

MAX_ROWS = 100_000
MAX_PACKED_BYTES = 2_400_000
"""Size limit of the packed table: with plotly.js and figures, a report stays below 5 MB."""
DIGITS = 5
"""Significant digits of times and rates."""

Values = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        key: its name; ``title`` is its heading, ``about`` its explanation.
        kind: ``int``, ``bytes``, ``us`` (microseconds), ``bps`` (whole from 0.5 on), ``text``, or ``name``: an index
            into `names`.
        values: one for each row; None if unknown.
    """

    key: str
    title: str
    about: str
    kind: str
    values: Sequence[float | str | None]
    names: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ConnectionTable:
    """The rows that fit into the page.

    Attributes:
        total: connections of the capture.
        rows: number of rows: the connections that lost most time, then those with most data, ordered by number.
        packed: the columns as JSON, compressed by gzip, in base64.
    """

    total: int
    rows: int
    columns: Sequence[Column]
    packed: str


def make_table(report: Report) -> ConnectionTable:
    """Make the table of a report, with as many rows as `MAX_ROWS` and `MAX_PACKED_BYTES` allow."""
    analysis = report.analysis
    order = np.array(worst(analysis, len(analysis), report.findings), dtype=np.int64)
    count = min(len(order), MAX_ROWS)
    chosen = np.sort(order[:count])
    columns = list(_columns(report, chosen))
    packed = _packed(columns)
    while len(packed) > MAX_PACKED_BYTES:
        count = int(count * MAX_PACKED_BYTES / len(packed) * 0.98)
        fits = np.isin(chosen, order[:count])
        chosen = chosen[fits]
        columns = [replace(each, values=list(compress(each.values, fits))) for each in columns]
        packed = _packed(columns)
    return ConnectionTable(len(analysis), count, columns, packed)


def _packed(columns: Sequence[Column]) -> str:
    return pack({"columns": [_document(each) for each in columns]})


def pack(document: Any) -> str:
    """Encode a value as JSON, gzip and base64, which has no character that is special in HTML."""
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    return pack_bytes(text.encode("utf-8", "backslashreplace"))


def pack_bytes(content: bytes) -> str:
    """Compress bytes with gzip and encode them in base64."""
    return base64.b64encode(gzip.compress(content, 6, mtime=0)).decode()


def _document(column: Column) -> dict[str, Any]:
    names = {"names": column.names} if column.names else {}
    return {"key": column.key, "kind": column.kind, "values": column.values, **names}


def _columns(report: Report, ids: NDArray[np.int64]) -> Iterator[Column]:
    analysis = report.analysis

    def take(name: str) -> Any:
        return analysis.connections.column(name)[ids]

    def of_both(field: str, combine: Any) -> Any:
        return combine(*(take(f"{name}.{field}") for name in DIRECTIONS))

    main = np.argmax([np.ma.filled(_data(take, name), 0) for name in DIRECTIONS], axis=0)
    has_data = np.max([np.ma.filled(_data(take, name), 0) for name in DIRECTIONS], axis=0) > 0

    def of_main(field: str) -> Any:
        return np.ma.where(
            main == 0,  # type: ignore[no-untyped-call]
            *(take(f"{name}.{field}") for name in DIRECTIONS),
        )

    counts = Counter(each.connection for each in report.findings)
    first_ns = analysis.capture.first_time_ns or 0
    yield Column("id", "#", "number of the connection", "int", [int(id) for id in ids])
    for side, role, about in (("a", "client", "opened the connection"), ("b", "server", "accepted it")):
        yield Column(side, role, f"{about}: address and port", "text", _ends(analysis, ids, side))
    yield Column(
        "start", "start", "of its first segment, since the capture's", "us", _whole(take("start_ns") - first_ns, 1000)
    )
    yield Column("duration", "duration", "from its first to its last segment", "us", _micros(take("duration_ns")))
    yield Column("a_to_b", "from client", "data, each byte once", "bytes", _whole(take("a_to_b.unique_bytes")))
    yield Column("b_to_a", "from server", "data, each byte once", "bytes", _whole(take("b_to_a.unique_bytes")))
    # Without captured ACKs of the data, the number is unknown rather than zero.
    is_unseen = has_data & np.ma.getmaskarray(of_main("flight_max_bytes"))
    is_brief = np.ma.filled(is_burst(of_main("data_segments"), of_main("acked_bytes")), fill_value=True)
    yield Column(
        "goodput",
        "goodput",
        "acknowledged data over time, of the direction with more data, unless it was one burst",
        "bps",
        _bps(np.ma.masked_where(is_unseen | is_brief, of_main("goodput_bps"))),
    )
    yield Column("rtt", "round trip", "the least of the whole path", "us", _micros(take("path_rtt_ns")))
    yield Column(
        "resent", "retransmissions", "segments, both directions", "int", _whole(of_both("retransmissions", np.ma.add))
    )
    yield Column("stalled", "silent", "time spent waiting for segments", "us", _micros(take("stall_ns")))
    verdicts = [report.verdict(int(id)) for id in ids]
    limits, confidences = [LIMIT_NAMES[name] for name in LIMITS], list(CONFIDENCES)
    yield Column("limit", "limit", "what limited it", "name", [LIMITS.index(each.limit) for each in verdicts], limits)
    yield Column(
        "share", "share, %", "of its duration, the limit's", "int", [round(100 * each.share) for each in verdicts]
    )
    yield Column(
        "confidence",
        "confidence",
        "in that limit",
        "name",
        [confidences.index(each.confidence) for each in verdicts],
        confidences,
    )
    cost = np.ma.masked_array(
        [each.named_ns for each in verdicts], [not each.is_problem for each in verdicts], dtype=np.int64
    )
    yield Column("cost", "cost", "of the limit that its fix is about, where it has a problem", "us", _micros(cost))
    yield Column("findings", "findings", "of the rules", "int", [counts[int(id)] for id in ids])
    closes, close_names = _named(take("close"))
    yield Column("close", "end", "how it ended", "name", closes, close_names)


def _data(take: Any, name: str) -> Any:
    return np.maximum(np.ma.filled(take(f"{name}.unique_bytes"), 0), np.ma.filled(take(f"{name}.acked_bytes"), 0))


def _ends(analysis: Analysis, ids: NDArray[np.int64], side: str) -> list[str]:
    addresses = analysis.connections.column(f"{side}_address")[ids]
    ports = analysis.connections.column(f"{side}_port")[ids]
    return [
        f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        for host, port in zip(addresses, ports.tolist(), strict=True)
    ]


def _named(texts: Any) -> tuple[list[int], list[str]]:
    names, places = np.unique(np.asarray(texts, dtype=object).astype(str), return_inverse=True)
    return places.tolist(), [str(name).replace("_", " ") for name in names]


def _whole(values: Any, unit: int = 1) -> list[int | None]:
    found: list[int | None] = np.ma.asarray(values // unit if unit > 1 else values).tolist()
    return found


def _micros(values: Any) -> list[int | None]:
    return _rounded(values / 1e3)


def _bps(values: Any) -> list[float | None]:
    """Round rates to whole numbers, but not down to zero: one word an hour is not a rate of 0."""
    exact: list[float | None] = np.ma.asarray(values).tolist()
    return [
        float(f"{rate:.3g}") if rate is not None and 0 < rate < 0.5 else whole
        for rate, whole in zip(exact, _rounded(values), strict=True)
    ]


def _rounded(values: Any) -> list[int | None]:
    """Round to `DIGITS` significant digits."""
    numbers = np.ma.asarray(values, dtype=np.float64)
    filled = np.nan_to_num(np.ma.filled(numbers, 0.0))
    steps = 10.0 ** np.maximum(np.floor(np.log10(np.maximum(np.abs(filled), 1))) - (DIGITS - 1), 0)
    whole = (np.round(filled / steps) * steps).astype(np.int64)
    found: list[int | None] = np.ma.masked_array(whole, mask=np.ma.getmaskarray(numbers)).tolist()
    return found
