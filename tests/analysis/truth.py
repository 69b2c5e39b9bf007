"""Flight and receive window over time, computed independently from the rows of one connection.

Takes rows (dictionaries) in capture order of a connection whose handshake was captured, and returns samples per
direction. Uses only header fields (seq, ack, length, flags, window) and the mark of the capture's duplicates, with the
rules of RFC 9293 §3.3.1 (SND.UNA, SND.NXT) and §3.10.7.4 (SND.WL1, SND.WL2). Deliberately plain and slow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
OTHER = {"a": "b", "b": "a"}
Samples = list[tuple[int, int]]


@dataclass
class Side:
    """Data sent by one side, and the other's window that limits it. Numbers count from the ISN."""

    isn: int | None = None
    una: int = 0
    nxt: int = 0
    fin_end: int | None = None
    first_ack_ns: int | None = None
    window: int | None = None
    window_since_ns: int = 0
    wl1: int = -1
    edge: int = 0
    payload: Samples = field(default_factory=list)
    flight: Samples = field(default_factory=list)
    windows: Samples = field(default_factory=list)
    edges: Samples = field(default_factory=list)
    sequence: Samples = field(default_factory=list)
    is_window_in_order: bool = True

    def flight_bytes(self) -> int:
        """Return SND.MAX − SND.UNA without SYN and FIN, which take sequence numbers but carry no data."""
        control = int(self.una == 0) + int(self.fin_end is not None and self.una < self.fin_end)
        return max(self.nxt - self.una - control, 0)


def has_handshake(rows: Iterable[dict[str, Any]]) -> bool:
    """Return whether both SYNs were captured and no ACK covers missing data, so that everything below is known."""
    rows = list(rows)
    kinds = {row["direction"]: row["flags"] & (SYN | ACK) for row in rows if row["flags"] & SYN}
    return kinds == {"a": SYN, "b": SYN | ACK} and not any("acked_unseen" in row["events"] for row in rows)


def follow(rows: Iterable[dict[str, Any]]) -> dict[str, Side]:
    """Return both directions by sender, after all rows of one connection."""
    sides = {"a": Side(), "b": Side()}
    for row in rows:
        if "capture_duplicate" in row["events"]:
            continue
        sent, acked = sides[row["direction"]], sides[OTHER[row["direction"]]]
        if row["flags"] & SYN and sent.isn is None:
            sent.isn = row["seq"]
        _take_ack(sent, acked, row)
        if not row["flags"] & RST:
            seq = _unwrap(row["seq"] - _isn(sent), sent.nxt)
            end = seq + row["length"] + bool(row["flags"] & SYN) + bool(row["flags"] & FIN)
            if row["flags"] & FIN:
                sent.fin_end = end
            sent.nxt = max(sent.nxt, end)
        now_ns = row["time_ns"]
        if row["length"]:
            sent.payload.append((now_ns, row["length"]))
        for side in sides.values():
            if side.isn is None:
                continue
            side.flight.append((now_ns, side.flight_bytes()))
            side.sequence.append((now_ns, side.nxt))
            if side.window is not None:
                side.windows.append((now_ns, side.window))
                side.edges.append((now_ns, side.edge))
    return sides


def _take_ack(sent: Side, acked: Side, row: dict[str, Any]) -> None:
    if row["flags"] & SYN and not row["flags"] & ACK:
        # A SYN's window limits data that starts one above an ISN still unknown.
        _accept(sent, acked, row, seq=0, ack=1)
        return
    # A reset is processed before its ACK (RFC 9293 §3.10.7.4).
    if row["flags"] & RST or not row["flags"] & ACK:
        return
    ack = _unwrap(row["ack"] - _isn(acked), acked.una)
    seq = _unwrap(row["seq"] - _isn(sent), sent.nxt)
    if acked.first_ack_ns is None:
        acked.first_ack_ns = row["time_ns"]
    if ack < acked.una or seq < acked.wl1:
        acked.is_window_in_order = False
    is_new = ack > acked.una
    acked.una = max(acked.una, ack)
    if ack < acked.una:
        return
    is_larger_or_zero = acked.window is None or row["window"] > acked.window or row["window"] == 0
    if is_new or seq > acked.wl1 or (seq == acked.wl1 and is_larger_or_zero):
        _accept(sent, acked, row, seq=seq, ack=ack)


def _accept(sent: Side, acked: Side, row: dict[str, Any], *, seq: int, ack: int) -> None:
    del sent
    if acked.window is None:
        acked.window_since_ns = row["time_ns"]
    acked.window, acked.wl1, acked.edge = row["window"], seq, ack + row["window"]


def _isn(side: Side) -> int:
    assert side.isn is not None, "a segment before its side's SYN"
    return side.isn


def _unwrap(offset: int, near: int) -> int:
    """Return the number congruent to `offset` modulo 2^32 nearest to `near`."""
    return near + (offset - near + (1 << 31)) % (1 << 32) - (1 << 31)


def weights(samples: Samples, end_ns: int, *, from_ns: int | None = None) -> list[tuple[int, int]]:
    """Return (value, nanoseconds) of a step function that holds each sample until the next, from `from_ns` on."""
    steps = []
    for (at_ns, value), (until_ns, _) in zip(samples, [*samples[1:], (end_ns, 0)], strict=True):
        begin_ns = at_ns if from_ns is None else max(at_ns, from_ns)
        if until_ns > begin_ns:
            steps.append((value, until_ns - begin_ns))
    return steps


def mean(steps: Sequence[tuple[int, int]]) -> float:
    return sum(value * ns for value, ns in steps) / sum(ns for _, ns in steps)


def percentile(steps: Sequence[tuple[int, int]], percent: int) -> int:
    """Return the smallest value that the quantity did not exceed for `percent` of the time."""
    total_ns, passed_ns = sum(ns for _, ns in steps), 0
    for value, ns in sorted(steps):
        passed_ns += ns
        if 100 * passed_ns >= percent * total_ns:
            return value
    raise AssertionError("no steps")


def buckets(samples: Samples, start_ns: int, width_ns: int) -> list[tuple[int, int, int, int, int]]:
    """Return samples in buckets of a width: start, minimum, maximum, last, sum."""
    found: dict[int, list[int]] = {}
    for time_ns, value in samples:
        found.setdefault((time_ns - start_ns) // width_ns, []).append(value)
    return [
        (start_ns + index * width_ns, min(values), max(values), values[-1], sum(values))
        for index, values in found.items()
    ]
