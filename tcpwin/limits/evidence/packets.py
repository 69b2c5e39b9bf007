"""The headers of a connection's packets as arrays, and the fate of each data segment.

In: a case whose capture is small enough to be read again. Out: Packets. It judges nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # Not as np: each function that uses it must import it.
    import numpy
    from numpy.typing import NDArray

    from tcpwin.limits.case import Case

    Numbers = NDArray[numpy.int64]
    Flags = NDArray[numpy.bool_]

FIN, SYN, RST, PSH, ACK = 0x01, 0x02, 0x04, 0x08, 0x10
SPACE = 1 << 32
MOST_BACK = 20_000
"""Segments before a retransmission among which its original is sought."""
COPY_NS = 100_000_000
"""The other side of a router sees a packet by then."""
MOST_SACKS = 2_000
"""ACKs whose SACK blocks are read."""


@dataclass(frozen=True)
class Packets:
    """Header fields of a connection's segments, in order; shape (segments,), -1 for absent values.

    Attributes:
        columns: fields by the engine's names (`_engine.header_columns`).
    """

    columns: dict[str, Numbers]

    def __getitem__(self, name: str) -> Numbers:
        return self.columns[name]

    def __len__(self) -> int:
        return len(self.columns["frame"])

    def of(self, chosen: Flags) -> Packets:
        """Return the packets chosen by a mask."""
        return Packets({name: values[chosen] for name, values in self.columns.items()})

    @cached_property
    def is_from_a(self) -> Flags:
        """Whether each segment is the initiator's."""
        mask: Flags = self["is_from_initiator"] == 1
        return mask

    def sent_by(self, side: str) -> Packets:
        """Return the segments of a side, ``a`` or ``b``."""
        return self.of(self.is_from_a if side == "a" else ~self.is_from_a)

    def has(self, flag: int) -> Flags:
        """Whether each segment has a flag."""
        mask: Flags = (self["flags"] & flag) != 0
        return mask


@dataclass(frozen=True)
class Sent:
    """A direction's data segments, with sequence numbers counted from the first.

    Attributes:
        frame, time_ns, start, end: values of each segment; shape (segments,).
        acked_ns: when the peer's ACKs or SACKs first covered the segment's first byte; -1 if never.
        again_ns: when that byte was next retransmitted; -1 if never.
        first_ns: when that byte was first sent.
    """

    frame: Numbers
    time_ns: Numbers
    start: Numbers
    end: Numbers
    acked_ns: Numbers
    again_ns: Numbers
    first_ns: Numbers

    @property
    def length(self) -> Numbers:
        """The payload's length."""
        return self.end - self.start

    @cached_property
    def is_lost(self) -> Flags:
        """Whether its first byte was retransmitted, and acknowledged only afterwards or never."""
        return (self.again_ns >= 0) & ((self.acked_ns < 0) | (self.acked_ns > self.again_ns))

    @cached_property
    def has_arrived(self) -> Flags:
        """Whether its first byte was acknowledged, and no later copy was sent before that."""
        return (self.acked_ns >= 0) & ~self.is_lost


def packets_of(case: Case) -> Packets | None:
    """Return the headers of the case's connection, or None if the capture may not be read again.

    Copies that the capture made of a packet, such as on a router's other side, are left out.
    """
    packets = case.reading.headers(case.analysis, case.connection.id)
    if packets is None or not (case.data.capture_duplicates or case.back.capture_duplicates):
        return packets
    return case.reading.derive("without copies", case.connection.id, "", lambda: packets.of(~_is_copy(packets)))


def _is_copy(packets: Packets) -> Flags:
    """Return which segments equal another one just before, but for the TTL."""
    import numpy as np

    names = ("is_from_initiator", "ip_id", "seq", "ack", "length", "flags", "time_ns")
    order = np.lexsort([packets[name] for name in reversed(names)])
    same = np.ones(len(order) - 1, bool)
    for name in names[:-1]:
        same &= np.diff(packets[name][order]) == 0
    same &= np.diff(packets["time_ns"][order]) < COPY_NS
    # Without an IP ID, a repetition by the sender looks the same but for its TTL.
    same &= (packets["ip_id"][order][1:] > 0) | (np.diff(packets["ttl"][order]) != 0)
    copies: Flags = np.zeros(len(order), bool)
    copies[order[1:][same]] = True
    return copies


def unwrapped(values: Numbers, base: int) -> Numbers:
    """Return sequence numbers relative to `base`, continued across the wrap, assuming steps below 2^31."""
    import numpy as np

    if not len(values):
        return values
    relative = (values - base + SPACE // 2) % SPACE - SPACE // 2
    steps = (np.diff(relative, prepend=relative[0]) + SPACE // 2) % SPACE - SPACE // 2
    whole: Numbers = relative[0] + np.cumsum(steps)
    return whole


def sent_of(packets: Packets, side: str) -> Sent | None:
    """Return a side's data segments and their fate; None without data or without its peer's ACKs."""
    import numpy as np

    own, peer = packets.sent_by(side), packets.sent_by("b" if side == "a" else "a")
    own = own.of((own["length"] > 0) & ~own.has(SYN))
    peer = peer.of(peer.has(ACK) & ~peer.has(RST))
    if not len(own):
        return None
    base = int(own["seq"][0])
    start = unwrapped(own["seq"], base)
    end = start + own["length"]
    acks = np.maximum.accumulate(unwrapped(peer["ack"], base)) if len(peer) else np.empty(0, np.int64)
    acked_ns = _when_reached(acks, peer["time_ns"], start + 1)
    _add_sacked(acked_ns, start, end, peer.of(peer["sack_blocks"] > 0), base)
    again_ns, first_ns = _copies(start, end, own["time_ns"])
    return Sent(own["frame"], own["time_ns"], start, end, acked_ns, again_ns, first_ns)


def _when_reached(acks: Numbers, times: Numbers, wanted: Numbers) -> Numbers:
    """Return when growing ACKs first reached each number; -1 if never."""
    import numpy as np

    place = np.searchsorted(acks, wanted, side="left")
    reached = place < len(acks)
    found = np.full(len(wanted), -1, np.int64)
    found[reached] = times[place[reached]]
    return found


def _add_sacked(acked_ns: Numbers, start: Numbers, end: Numbers, sacks: Packets, base: int) -> None:
    """Note the segments in the newest block of each SACK; of many, only the first."""
    import numpy as np

    sacks = sacks.of(np.arange(len(sacks)) < MOST_SACKS)
    lefts = (sacks["sack_left"] - base + SPACE // 2) % SPACE - SPACE // 2
    lefts += np.round((unwrapped(sacks["ack"], base) - lefts) / SPACE).astype(np.int64) * SPACE
    rights = lefts + (sacks["sack_right"] - sacks["sack_left"]) % SPACE
    for left, right, time_ns in zip(lefts, rights, sacks["time_ns"], strict=True):
        inside = (start >= left) & (end <= right) & ((acked_ns < 0) | (acked_ns > time_ns))
        acked_ns[inside] = time_ns


def _copies(start: Numbers, end: Numbers, times: Numbers) -> tuple[Numbers, Numbers]:
    """Return when each segment's first byte was sent next, and when first.

    Only segments that begin below what was sent before them can repeat anything: usually few.
    """
    import numpy as np

    again_ns, first_ns = np.full(len(start), -1, np.int64), times.copy()
    before = np.concatenate(([start[0]], np.maximum.accumulate(end)[:-1]))
    for number in map(int, np.flatnonzero(start < before)):
        # Whatever this segment repeats was sent within the flight before it.
        low = max(0, number - MOST_BACK)
        hit = low + np.flatnonzero((start[low:number] >= start[number]) & (start[low:number] < end[number]))
        open_ = hit[again_ns[hit] < 0]
        again_ns[open_] = times[number]
        covers = low + np.flatnonzero((start[low:number] <= start[number]) & (end[low:number] > start[number]))
        if len(covers):
            first_ns[number] = min(first_ns[number], int(first_ns[covers].min()))
    return again_ns, first_ns
