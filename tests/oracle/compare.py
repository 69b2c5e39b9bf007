"""Compare tcpwin's per-segment table with tshark's, segment by segment and field by field.

Takes a folder of captures and one of tshark 4.0 tables (NAME.tshark.tsv.gz, a header row first). For each capture it
returns the segments with both results, the number of comparisons per field, and every difference. kinds.py judges who
is right.
"""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import tcpwin

TABLE = ".tshark.tsv.gz"
FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
# Event: tshark's name. Fast and spurious retransmissions also have its `retransmission`.
EVENTS = {
    "zero_window": "zero_window",
    "window_full": "window_full",
    "window_update": "window_update",
    "zero_window_probe": "zero_window_probe",
    "keep_alive": "keep_alive",
    "duplicate_ack": "duplicate_ack",
    "previous_segment_missing": "lost_segment",
    "acked_unseen": "ack_lost_segment",
    "out_of_order": "out_of_order",
    "fast_retransmission": "fast_retransmission",
    "spurious_retransmission": "spurious_retransmission",
    "resent": "retransmission",
}
# The main kinds of retransmission, of which a segment has one: together the field `resent`.
RESENT = {"retransmission", "fast_retransmission", "rto_retransmission", "tail_loss_probe", "spurious_retransmission"}
FIELDS = ("seq", "ack", "length", "flags", "window_raw", "window", "stream", "bytes_in_flight", *EVENTS)
# The beginning of a category in debatable.csv, and the fields that it puts in doubt.
DOUBTS = {
    "bif_": {"bytes_in_flight"},
    "scale_": {"window"},
    "syn": {"window"},
    "wscale_": {"window"},
    "window_limited": {"window_full"},
    "window_update": {"window_update"},
    "capture_duplicate_": {"duplicate_ack", "out_of_order", "resent", "spurious_retransmission", "fast_retransmission"},
    "dupack_": {"duplicate_ack"},
    "ooo_": {"resent", "out_of_order"},
    "fast_": {"fast_retransmission"},
    "spurious_": {"resent", "spurious_retransmission"},
    "partial_": {"resent", "out_of_order", "bytes_in_flight"},
}


@dataclass(frozen=True, slots=True)
class Segment:
    """One TCP segment as dissected by tshark; with several headers in one frame, the innermost addresses."""

    frame: int
    time_ns: int
    stream: int
    source: tuple[str, str]
    destination: tuple[str, str]
    seq: int
    ack: int
    length: int
    flags: int
    window_raw: int
    wscale: int | None
    timestamps: tuple[int, int] | None
    sack: tuple[tuple[int, int], ...]
    ip_id: str
    ttl: str
    checksum: str
    # tshark's results.
    initial_rtt_ns: int | None
    window: int | None
    bytes_in_flight: int | None
    events: frozenset[str]


@dataclass(frozen=True, slots=True)
class Difference:
    field: str
    frame: int
    ours: Any
    theirs: Any
    is_debatable: bool


@dataclass
class Comparison:
    """One capture. `missing` lists the segments that tcpwin lacks, `extra` those that only tcpwin has."""

    name: str
    segments: list[Segment] = field(default_factory=list)
    rows: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    seen: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)
    extra: list[int] = field(default_factory=list)


def compare_all(folder: Path) -> Iterator[Comparison]:
    """Compare every capture of FOLDER/real that has a table in FOLDER/real-oracle."""
    doubts = read_doubts(folder / "debatable.csv")
    tables = folder / "real-oracle"
    for table in sorted(tables.rglob(f"*{TABLE}")):
        name = str(table.relative_to(tables)).removesuffix(TABLE)
        yield compare(name, folder / "real" / name, table, doubts)


def compare(name: str, capture: Path, table: Path, doubts: set[tuple[str, int, str]]) -> Comparison:
    comparison = Comparison(name)
    rows = {int(row["frame"]): dict(row) for row in tcpwin.analyze(capture).segments().rows()}
    pairs: dict[tuple[str, int], int] = {}
    for frame, segment in read_table(table):
        row = rows.pop(frame, None)
        if segment is None:
            continue
        if row is None:
            comparison.missing.append(frame)
            continue
        comparison.segments.append(segment)
        comparison.rows[frame] = row
        # One tshark stream is one connection, and vice versa.
        connection = pairs.setdefault(("connection of", segment.stream), row["connection"])
        stream = pairs.setdefault(("stream of", row["connection"]), segment.stream)
        for name_, ours, theirs in judge(segment, row, (connection, stream)):
            comparison.seen[name_] += 1
            if not agree(name_, ours, theirs):
                is_debatable = (name, frame, name_) in doubts
                comparison.differences.append(Difference(name_, frame, ours, theirs, is_debatable))
    comparison.extra = sorted(rows)
    return comparison


def judge(segment: Segment, row: Mapping[str, Any], pair: tuple[int, int]) -> Iterator[tuple[str, Any, Any]]:
    """Yield each field for which both can have a value: its name, tcpwin's value, tshark's."""
    yield "seq", row["seq"], segment.seq
    if segment.flags & ACK:
        yield "ack", row["ack"], segment.ack
    yield "length", row["length"], segment.length
    yield "flags", row["flags"] & 0xFF, segment.flags & 0xFF
    yield "window_raw", row["window_raw"], segment.window_raw
    yield "stream", (row["connection"], segment.stream), pair
    if segment.window is not None:
        yield "window", row["window"], segment.window
    if segment.bytes_in_flight is not None:
        yield "bytes_in_flight", (row["bytes_in_flight"], row["pipe"]), segment.bytes_in_flight
    events = events_of(row)
    for event in EVENTS:
        if event in events or event in segment.events:
            yield event, event in events, event in segment.events


def events_of(row: Mapping[str, Any]) -> set[str]:
    """Return tcpwin's events at a segment, with the field `resent`."""
    events = {event for event in str(row["events"] or "").split("|") if event}
    return events | {"resent"} if events & RESENT else events


def agree(name: str, ours: Any, theirs: Any) -> bool:
    """tshark's bytes in flight may be tcpwin's flight or, without SACKed data, its pipe."""
    return bool(theirs in ours if name == "bytes_in_flight" else ours == theirs)


def read_doubts(path: Path) -> set[tuple[str, int, str]]:
    """Return (capture, frame, field) for the fields that the list of debatable frames doubts."""
    with path.open(newline="", encoding="utf8") as lines:
        return {
            (row["file"], int(row["frame"]), name)
            for row in csv.DictReader(lines)
            for start, names in DOUBTS.items()
            if row["category"].startswith(start)
            for name in names
        }


def read_table(path: Path) -> Iterator[tuple[int, Segment | None]]:
    """Yield each frame's segment, or None unless tshark's row is one complete segment of a connection."""
    with gzip.open(path, "rt", encoding="utf8", errors="replace") as lines:
        for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            yield int(row["frame.number"]), parse_segment(row) if is_judged(row) else None


def is_judged(row: Mapping[str, str]) -> bool:
    """Return whether the frame has one complete TCP header that is not quoted in an ICMP error."""
    is_quoted = bool({"icmp", "icmpv6"} & set(row["frame.protocols"].split(":")))
    is_single = bool(row["tcp.srcport"]) and "," not in row["tcp.srcport"]
    return is_single and bool(row["tcp.window_size_value"]) and not is_quoted


def parse_segment(row: Mapping[str, str]) -> Segment:
    def number(name: str) -> int | None:
        text = row[name].partition(",")[0]
        return int(text, 0) if text else None

    def inner(name: str) -> str:
        return (row[f"ip.{name}"] or row[f"ipv6.{name}"]).rpartition(",")[2]

    def nanoseconds(name: str) -> int | None:
        return int(Decimal(row[name]).scaleb(9)) if row[name] else None

    scale = number("tcp.window_size_scalefactor")
    edges = zip(row["tcp.options.sack_le"].split(","), row["tcp.options.sack_re"].split(","), strict=False)
    value, echo = number("tcp.options.timestamp.tsval"), number("tcp.options.timestamp.tsecr")
    return Segment(
        frame=int(row["frame.number"]),
        time_ns=nanoseconds("frame.time_epoch") or 0,
        stream=number("tcp.stream") or 0,
        source=(inner("src"), row["tcp.srcport"]),
        destination=(inner("dst"), row["tcp.dstport"]),
        seq=number("tcp.seq_raw") or 0,
        ack=number("tcp.ack_raw") or 0,
        length=number("tcp.len") or 0,
        flags=number("tcp.flags") or 0,
        window_raw=number("tcp.window_size_value") or 0,
        wscale=number("tcp.options.wscale.shift"),
        timestamps=None if value is None or echo is None else (value, echo),
        sack=tuple((int(left), int(right)) for left, right in edges if left and right),
        ip_id=row["ip.id"].rpartition(",")[2],
        ttl=row["ip.ttl"].rpartition(",")[2],
        checksum=row["tcp.checksum"],
        initial_rtt_ns=nanoseconds("tcp.analysis.initial_rtt"),
        window=None if scale in (None, -1) else number("tcp.window_size"),
        bytes_in_flight=number("tcp.analysis.bytes_in_flight"),
        events=frozenset(event for event, theirs in EVENTS.items() if row[f"tcp.analysis.{theirs}"]),
    )
