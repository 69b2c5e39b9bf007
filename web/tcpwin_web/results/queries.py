"""Read parts of a capture's results: a page of rows, a span of a series.

Reads existing files; callers make sure that they exist. Runs in threads: nothing here waits for the network.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars
from numpy.typing import NDArray

from tcpwin_web.results import layout
from tcpwin_web.results.columns import COLUMNS, FLAGS, TEXTS, VERDICT

WORST = "worst"
"""Sort order in which problems come first, by time lost."""
BOOLEANS = {"true": 1.0, "false": 0.0}
OPERATORS = {">=": "ge", "<=": "le", ">": "gt", "<": "lt", "=": "eq", "!=": "ne"}


class QueryError(Exception):
    """A question that the results cannot answer, in words for the caller."""


@dataclass(frozen=True)
class Page:
    """Some rows of a table, and the total number of matching rows."""

    rows: polars.DataFrame
    total: int
    offset: int = 0


def read_document(folder: Path, name: str) -> Any:
    """Return one of the JSON documents."""
    return json.loads((folder / name).read_bytes())


def read_figures(folder: Path) -> dict[str, Any]:
    """Return the layouts of the figures that people open first, by name; empty until they are drawn."""
    try:
        found: dict[str, Any] = read_document(folder, layout.FIGURES)
    except FileNotFoundError:
        return {}
    return found


def list_connections(
    folder: Path,
    *,
    search: str = "",
    port: int | None = None,
    span: tuple[int | None, int | None] = (None, None),
    where: Sequence[str] = (),
    sort: str = WORST,
    offset: int = 0,
    limit: int,
    columns: Sequence[str] = (),
) -> Page:
    """Return a page of connections.

    Args:
        search: part of an address, ``address:port`` or ``:port``, of either end.
        port: port of either end.
        span: two times, nanoseconds since the epoch: connections that existed between them.
        where: conditions such as ``a_to_b.zero_window_ns>0``; all must hold.
        sort: `WORST` or a column, with a leading ``-`` for descending order; rows without a value come last.
        columns: columns to return; all by default.

    Raises:
        QueryError: there is no such column, or a condition is invalid.
    """
    frame = polars.scan_parquet(folder / layout.CONNECTIONS)
    if search:
        ends = [
            polars.when(polars.col(f"{side}_address").str.contains(":", literal=True))
            .then(polars.format("[{}]:{}", f"{side}_address", f"{side}_port"))
            .otherwise(polars.format("{}:{}", f"{side}_address", f"{side}_port"))
            .str.contains(search, literal=True)
            for side in ("a", "b")
        ]
        frame = frame.filter(polars.any_horizontal(*ends))
    if port is not None:
        frame = frame.filter((polars.col("a_port") == port) | (polars.col("b_port") == port))
    if span[0] is not None:
        frame = frame.filter(polars.col("end_ns") >= span[0])
    if span[1] is not None:
        frame = frame.filter(polars.col("start_ns") <= span[1])
    for text in where:
        frame = frame.filter(_condition(text))
    return _page(frame, sort, offset, limit, columns)


def _condition(text: str) -> polars.Expr:
    for sign, method in OPERATORS.items():
        name, found, value = text.partition(sign)
        name = name.strip()
        if found and name in COLUMNS:
            wanted: str | float = value.strip()
            if name not in TEXTS:
                try:
                    wanted = BOOLEANS[wanted] if name in FLAGS and wanted in BOOLEANS else float(wanted)
                except ValueError:
                    raise QueryError(f"{text[:80]!r}: {name} is compared with a number") from None
            column = polars.col(name).cast(polars.Int8) if name in FLAGS else polars.col(name)
            expression: polars.Expr = getattr(column, method)(polars.lit(wanted))
            return expression
    raise QueryError(f"{text[:80]!r} is not a condition such as a_to_b.zero_window_ns>0 on one of the columns")


def _page(frame: polars.LazyFrame, sort: str, offset: int, limit: int, columns: Sequence[str]) -> Page:
    name, descending = sort.removeprefix("-"), sort.startswith("-")
    for each in (*(() if sort == WORST else (name,)), *columns):
        if each not in COLUMNS:
            raise QueryError(f"unknown column {each[:80]!r}")
    # Sort only what sorting needs; take the other columns for the page's rows alone.
    if sort == WORST:
        carried = polars.col("a_to_b.payload_bytes") + polars.col("b_to_a.payload_bytes")
        ranked = frame.select("verdict.is_problem", "verdict.lost_ns", carried.alias("carried"), "id")
        keys, falling = ranked.collect_schema().names(), [True, True, True, False]
    else:
        keys = list(dict.fromkeys((name, "id")))
        ranked, falling = frame.select(keys), [descending, False][: len(keys)]
    order = ranked.sort(keys, descending=falling, nulls_last=True).collect()
    wanted = polars.DataFrame({"id": order.get_column("id").slice(offset, limit)})
    shown = frame.select(list(dict.fromkeys(("id", *(columns or COLUMNS)))))
    # Comparing with a list of numbers takes 50 ms even for few rows.
    rows = shown.join(wanted.lazy(), on="id", how="semi").collect()
    rows = wanted.join(rows, on="id", how="left", maintain_order="left")
    return Page(rows, order.height)


def describe_rows(rows: polars.DataFrame) -> list[dict[str, Any]]:
    """Return rows as objects, with the verdict's columns as one object under ``verdict``."""
    own = [name for name in rows.columns if not name.startswith(VERDICT)]
    of_verdict = [name for name in rows.columns if name.startswith(VERDICT)]
    described = [dict(zip(own, values, strict=True)) for values in rows.select(own).rows()]
    if of_verdict:
        names = [name.removeprefix(VERDICT) for name in of_verdict]
        for row, values in zip(described, rows.select(of_verdict).rows(), strict=True):
            row["verdict"] = dict(zip(names, values, strict=True))
    return described


def rows_json(rows: polars.DataFrame) -> str:
    """Return rows as `describe_rows` does, as JSON with null for nan: for a long list in a sixth of Python's time."""
    own = [name for name in rows.columns if not name.startswith(VERDICT)]
    of_verdict = [polars.col(name).alias(name.removeprefix(VERDICT)) for name in rows.columns if name not in own]
    described = rows.select(own)
    if of_verdict:
        described = described.with_columns(rows.select(polars.struct(of_verdict).alias("verdict")).to_series())
    return described.write_json()


def read_sentences(folder: Path) -> str:
    """Return all sentences of the results as JSON: summary, notes and findings."""
    document = read_document(folder, layout.CAPTURE)
    findings = polars.read_parquet(folder / layout.FINDINGS, columns=["document"]).get_column("document")
    return "\n".join([json.dumps([document["summary"], document["notes"], document["quality"]]), *findings])


def find_connection(folder: Path, wanted: Mapping[str, Any]) -> int | None:
    """Find a connection of another capture in this one: the same ends at the same time.

    If none overlaps, as clocks may differ, return the only one with these ends.

    Args:
        wanted: a_address, a_port, b_address, b_port, start_ns and end_ns of the other capture's connection.
    """
    ends = [(wanted[f"{side}_address"], wanted[f"{side}_port"]) for side in ("a", "b")]
    both = [
        polars.all_horizontal(
            *(
                (polars.col(f"{side}_address") == address) & (polars.col(f"{side}_port") == port)
                for side, (address, port) in zip(("a", "b"), each, strict=True)
            )
        )
        # Without the SYN either end may have been taken for the initiator.
        for each in (ends, ends[::-1])
    ]
    overlap = polars.min_horizontal("end_ns", wanted["end_ns"]) - polars.max_horizontal("start_ns", wanted["start_ns"])
    found = (
        polars.scan_parquet(folder / layout.CONNECTIONS)
        .filter(polars.any_horizontal(*both))
        .select("id", overlap.alias("overlap"))
        .sort(["overlap", "id"], descending=[True, False])
        .head(2)
        .collect()
    )
    is_unique = found.height == 1 or (found.height == 2 and found["overlap"][0] >= 0)
    return int(found["id"][0]) if is_unique else None


def read_sketches(folder: Path) -> dict[str, Any]:
    """Return SVG paths of the sketched connections, by their numbers as text; empty until they are drawn."""
    try:
        found: dict[str, Any] = read_document(folder, layout.SKETCHES)
    except FileNotFoundError:
        return {}
    return found


def list_findings(
    folder: Path,
    *,
    connection: int | None = None,
    code: str | None = None,
    severity: int = 0,
    offset: int = 0,
    limit: int,
    has_view: bool = False,
) -> tuple[list[Any], int]:
    """Return a page of findings, costliest first, and the total number of matches.

    Args:
        has_view: include each finding's texts as `view`.
    """
    frame = polars.scan_parquet(folder / layout.FINDINGS).filter(polars.col("severity") >= severity)
    if connection is not None:
        frame = frame.filter(polars.col("connection") == connection)
    if code:
        frame = frame.filter(polars.col("code").str.starts_with(code))
    found = frame.sort("position").collect()
    page = found.select("document", "view").slice(offset, limit)
    documents = [json.loads(each) for each in page.get_column("document")]
    if has_view:
        views = map(json.loads, page.get_column("view"))
        documents = [{**each, "view": view} for each, view in zip(documents, views, strict=True)]
    return documents, found.height


def findings_of(folder: Path, connections: Collection[int]) -> list[Any]:
    """Return the findings of some connections, each with its whole document, costliest first."""
    frame = polars.scan_parquet(folder / layout.FINDINGS).filter(polars.col("connection").is_in(list(connections)))
    found = frame.sort("position").collect()
    return [json.loads(document) for document in found.get_column("document")]


@dataclass(frozen=True)
class SeriesSpan:
    """A span of a series: extremes per bucket, without empty buckets.

    Attributes:
        width_ns: bucket width; 1 for single samples.
        columns: time_ns, min, max, last, sum; int64, shape (n,).
    """

    width_ns: int
    columns: Mapping[str, NDArray[np.int64]]

    def to_frame(self) -> polars.DataFrame:
        """Return the columns as a table."""
        return polars.DataFrame(dict(self.columns))


def read_series(
    place: Path, name: str, side: str, *, start_ns: int | None, end_ns: int | None, points: int
) -> SeriesSpan:
    """Return a series between two times in at most this many buckets, starting with the value in force at the start.

    Args:
        place: folder of the connection's details, or of its series only.

    Raises:
        QueryError: there is no such series.
    """
    runs = read_document(place, layout.RUNS)
    run = next((each for each in runs if (each["name"], each["side"]) == (name, side)), None)
    if run is None:
        names = ", ".join(dict.fromkeys(each["name"] for each in runs))
        raise QueryError(f"unknown series {name[:40]!r}: {names}")
    first, count = run["first"], run["count"]
    values = np.load(place / layout.SERIES, mmap_mode="r")[:, first : first + count]
    arrays = dict(zip(layout.VALUES, values, strict=True))
    time_ns = arrays["time_ns"]
    begin = 0 if start_ns is None else max(int(np.searchsorted(time_ns, start_ns, "right")) - 1, 0)
    end = count if end_ns is None else int(np.searchsorted(time_ns, end_ns, "right"))
    cut = {column: values[begin : max(end, begin)] for column, values in arrays.items()}
    return _merged(run["width_ns"], cut, points)


def _merged(width_ns: int, columns: dict[str, NDArray[np.int64]], points: int) -> SeriesSpan:
    """Merge buckets until they are few enough; extremes are preserved."""
    time_ns = columns["time_ns"]
    if len(time_ns) <= points:
        return SeriesSpan(width_ns, columns)
    extent = int(time_ns[-1] - time_ns[0]) + 1
    width_ns = max(-(-extent // points), width_ns)
    bucket = (time_ns - time_ns[0]) // width_ns
    starts = np.flatnonzero(np.diff(bucket, prepend=-1))
    ends = np.append(starts[1:], len(bucket)) - 1
    return SeriesSpan(
        width_ns,
        {
            "time_ns": time_ns[starts],
            "min": np.minimum.reduceat(columns["min"], starts),
            "max": np.maximum.reduceat(columns["max"], starts),
            "last": columns["last"][ends],
            "sum": np.add.reduceat(columns["sum"], starts),
        },
    )


def list_segments(
    folder: Path,
    connection: int,
    *,
    start_ns: int | None,
    end_ns: int | None,
    offset: int,
    limit: int,
    frame: int | None = None,
) -> Page:
    """Return segments of a connection between two times.

    Args:
        frame: return the rows around this frame, instead of those from `offset` on.

    Raises:
        QueryError: the connection has too many segments for a table, or the frame is not in this span.
    """
    place = folder / layout.connection(connection)
    if not (place / layout.SEGMENTS).exists():
        raise QueryError("this connection has too many segments for a table: `tcpwin packets --connection` writes it")
    # Segments are in frame order, in which times may step back.
    time_ns = np.load(place / layout.SEGMENT_TIMES, mmap_mode="r")
    inside = np.ones(len(time_ns), dtype=bool)
    if start_ns is not None:
        inside &= time_ns >= start_ns
    if end_ns is not None:
        inside &= time_ns <= end_ns
    numbers = np.flatnonzero(inside)
    if frame is not None:
        found = _place(place, frame, numbers)
        if found is None:
            within_span = "" if len(numbers) == len(time_ns) else " in this span"
            raise QueryError(f"frame {frame:,} is not a segment of this connection{within_span}")
        offset = max(found - limit // 2, 0)
    wanted = numbers[offset : offset + limit]
    first, last = (int(wanted[0]), int(wanted[-1])) if len(wanted) else (0, -1)
    rows = polars.scan_parquet(place / layout.SEGMENTS).slice(first, last - first + 1).collect()
    return Page(rows[wanted - first], len(numbers), offset)


def _place(place: Path, frame: int, numbers: NDArray[np.intp]) -> int | None:
    """Return the position of a frame among rows of the segment table, in frame order; None if it is missing."""
    frames = polars.scan_parquet(place / layout.SEGMENTS).select("frame").collect().get_column("frame").to_numpy()
    row = int(np.searchsorted(frames, frame))
    found = int(np.searchsorted(numbers, row))
    if row == len(frames) or frames[row] != frame or found == len(numbers) or numbers[found] != row:
        return None
    return found


def within(items: list[Any], key: str, until: str, start_ns: int | None, end_ns: int | None) -> list[Any]:
    """Keep rows whose time from `key` to `until` overlaps the span."""
    return [
        each
        for each in items
        if (start_ns is None or each[until] >= start_ns) and (end_ns is None or each[key] <= end_ns)
    ]
