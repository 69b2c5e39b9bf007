"""The packets of a ladder: as many as a browser can handle, with the times of all losses.

In: a Pairing, whose captures are read once more, in chunks. Out: Rungs. Packets with an event are preferred; every
second one of the others is dropped whenever there are too many. Delays are kept as the minimum and maximum of time
columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tcpwin.pairing import PairedConnection, Pairing

    Columns = dict[str, NDArray[Any]]

ORDINARY = ("data", "acks")
COLUMNS = 400
"""Maximum number of columns of the delays."""
_ODD = ("late", "duplicated", "unknown", "lost")
_SAMPLED = 50_000
"""Maximum number of packets of each kind that are held while the captures are read."""
_LOSSES = 1_000
"""Maximum number of losses that a page may step through."""
_NONE = 1 << 62


@dataclass
class Delays:
    """Minimum and maximum delay in columns of time, whose width doubles when they run out."""

    from_ns: int | None = None
    width_ns: int = 1_000
    least_ns: NDArray[np.int64] = field(default_factory=lambda: np.full(2 * COLUMNS, _NONE))
    most_ns: NDArray[np.int64] = field(default_factory=lambda: np.full(2 * COLUMNS, -_NONE))

    def add(self, time_ns: NDArray[np.int64], delay_ns: NDArray[np.int64]) -> None:
        """Add packets, which may be older than those before."""
        if not len(time_ns):
            return
        first_ns, last_ns = int(time_ns.min()), int(time_ns.max())
        if self.from_ns is None:
            self.from_ns = first_ns
        while first_ns < self.from_ns or last_ns >= self.from_ns + self.width_ns * len(self.least_ns):
            self._widen(first_ns < self.from_ns)
        places = (time_ns - self.from_ns) // self.width_ns
        np.minimum.at(self.least_ns, places, delay_ns)
        np.maximum.at(self.most_ns, places, delay_ns)

    def _widen(self, is_earlier: bool) -> None:
        count = len(self.least_ns)
        if is_earlier and self.from_ns is not None:
            self.from_ns -= self.width_ns * count
        for name, reduce, none in (("least_ns", np.minimum, _NONE), ("most_ns", np.maximum, -_NONE)):
            halves = reduce(getattr(self, name)[0::2], getattr(self, name)[1::2])
            rest = np.full(count - len(halves), none)
            setattr(self, name, np.concatenate([rest, halves] if is_earlier else [halves, rest]))
        self.width_ns *= 2

    def columns(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the start of each column with packets, its minimum and its maximum."""
        filled = self.most_ns > -_NONE
        starts = (self.from_ns or 0) + np.flatnonzero(filled) * self.width_ns
        return starts, self.least_ns[filled], self.most_ns[filled]


@dataclass
class _Sample:
    """An even sample of the packets of a kind."""

    most: int
    step: int = 1
    seen: int = 0
    parts: list[Columns] = field(default_factory=list)
    count: int = 0

    def add(self, columns: Columns) -> None:
        places = np.arange(self.seen, self.seen + len(columns["left_ns"]))
        self.seen += len(places)
        self._take({**columns, "place": places})
        while self.count > self.most:
            self.step *= 2
            parts, self.parts, self.count = self.parts, [], 0
            for part in parts:
                self._take(part)

    def _take(self, columns: Columns) -> None:
        chosen = columns["place"] % self.step == 0
        self.parts.append({name: values[chosen] for name, values in columns.items()})
        self.count += int(chosen.sum())


@dataclass(frozen=True)
class Rungs:
    """A connection's packets.

    Attributes:
        packets: columns in the order in which the packets left: ``left_ns`` and ``delay_ns`` by a's clock, ``kind``,
            ``direction``, ``frame_a``, ``frame_b``, ``seq``, ``length``, ``leaves_at_b``, ``is_measured``.
        total: number of packets in the span.
        first_ns, last_ns: bounds of the whole connection.
        losses_ns: departure times of lost packets, of the whole connection; at most 1,000.
        delays: delays of each direction in the span.
    """

    packets: Columns
    total: int
    first_ns: int
    last_ns: int
    losses_ns: NDArray[np.int64]
    delays: tuple[Delays, Delays]


def read_rungs(pairing: Pairing, paired: PairedConnection, start_ns: int | None, end_ns: int | None) -> Rungs:
    """Read a connection's packets, and keep those that left within a span."""
    gathered = _Gathered(pairing, paired, start_ns, end_ns)
    pairing.read_packets(gathered.take)
    return gathered.rungs()


class _Gathered:
    def __init__(self, pairing: Pairing, paired: PairedConnection, start_ns: int | None, end_ns: int | None) -> None:
        self._pairing = pairing
        self._paired = paired
        self._span = (start_ns, end_ns)
        self._ordinary, self._eventful = _Sample(_SAMPLED), _Sample(_SAMPLED)
        self._losses = _Sample(_LOSSES)
        self._ends: list[int] = []
        self._delays = (Delays(), Delays())

    def take(self, table: Columns) -> None:
        table = {name: values[table["connection"] == self._paired.number] for name, values in table.items()}
        columns = _rungs_of(self._pairing, self._paired, table)
        left_ns = columns["left_ns"]
        if not len(left_ns):
            return
        self._ends = [min([int(left_ns.min()), *self._ends[:1]]), max([int(left_ns.max()), *self._ends[1:]])]
        self._losses.add({"left_ns": left_ns[columns["kind"] == "lost"]})
        start_ns, end_ns = self._span
        inside = np.ones(len(left_ns), dtype=bool)
        if start_ns is not None:
            inside &= left_ns + np.maximum(columns["delay_ns"], 0) >= start_ns
        if end_ns is not None:
            inside &= left_ns <= end_ns
        columns = {name: values[inside] for name, values in columns.items()}
        for index, delays in enumerate(self._delays):
            mine = (columns["direction"] == index) & columns["is_measured"]
            delays.add(columns["left_ns"][mine], columns["delay_ns"][mine])
        is_ordinary = np.isin(columns["kind"], ORDINARY)
        for sample, wanted in ((self._ordinary, is_ordinary), (self._eventful, ~is_ordinary)):
            sample.add({name: values[wanted] for name, values in columns.items()})

    def rungs(self) -> Rungs:
        parts = [*self._ordinary.parts, *self._eventful.parts]
        packets = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}
        if packets:
            order = np.argsort(packets["left_ns"], kind="stable")
            packets = {name: values[order] for name, values in packets.items() if name != "place"}
        losses = [part["left_ns"] for part in self._losses.parts]
        return Rungs(
            packets,
            self._ordinary.seen + self._eventful.seen,
            self._ends[0] if self._ends else 0,
            self._ends[1] if self._ends else 0,
            np.sort(np.concatenate(losses)) if losses else np.empty(0, np.int64),
            self._delays,
        )


def _rungs_of(pairing: Pairing, paired: PairedConnection, table: Columns) -> Columns:
    """Return rows of the table as lines of a ladder, with times by a's clock and the kind of each."""
    in_a, in_b = table["frame_a"] > 0, table["frame_b"] > 0
    leaves_at_b = np.array([each.leaves_at == "b" for each in paired.directions])[table["direction"]]
    least = np.array([each.delay.least_ns if each.delay else 0 for each in paired.directions], dtype=np.int64)
    at_a = np.where(in_a, table["time_a_ns"], 0)
    at_b = np.where(in_b, table["time_b_ns"], 0)
    delay_ns = np.where(in_a & in_b, table["delay_ns"], least[table["direction"]])
    # Seen at b alone: use the clock offset at that time, accurate enough for a line.
    if pairing.clock is not None:
        pieces = pairing.clock.pieces
        begins = np.array([piece.from_ns + piece.offset_ns for piece in pieces])
        index = np.maximum(np.searchsorted(begins, at_b, side="right") - 1, 0)
        at_b = at_b - np.array([piece.offset_ns for piece in pieces], dtype=np.int64)[index]
    left_ns = np.where(leaves_at_b, np.where(in_a, at_a - delay_ns, at_b), np.where(in_a, at_a, at_b - delay_ns))
    kind = np.where(table["length"] > 0, "data", "acks").astype(object)
    kind[table["is_resend"]] = "resend"
    for fate in _ODD:
        kind[table["fate"] == fate] = fate
    shown = ~np.isin(table["fate"], ("captured_twice", "injected"))
    columns = {
        **{name: table[name] for name in ("direction", "frame_a", "frame_b", "seq", "length")},
        "left_ns": left_ns,
        "delay_ns": delay_ns,
        "is_measured": in_a & in_b,
        "leaves_at_b": leaves_at_b,
        "kind": kind,
    }
    return {name: values[shown] for name, values in columns.items()}
