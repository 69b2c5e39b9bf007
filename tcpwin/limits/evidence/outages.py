"""Find times in which nothing that a side sent arrived, before the path recovered.

In: a case. Out: Outage values. Random loss drops single segments; an outage drops all of them, of any size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.dropped import DROPPED
from tcpwin.limits.evidence.hosts import growth
from tcpwin.limits.evidence.packets import ACK, SPACE, SYN, Packets, Sent, packets_of, sent_of
from tcpwin.limits.evidence.refused import LostUnread, lost_unread
from tcpwin.limits.evidence.sizes import find_size_limit
from tcpwin.limits.roles import other_side
from tcpwin.units import time_text

if TYPE_CHECKING:
    from tcpwin.limits.evidence.packets import Flags

LEAST_NS = 1_000_000_000
"""Shorter ones are a burst of losses."""
FEWEST_TRIES = 3
"""Times at which the sender tried: an original and two repetitions by its timer, which doubles."""
APART_NS = 100_000_000
"""Tries are further apart than the segments of one flight."""
LOSSY = 0.02
"""Share of losses outside of outages above which several of them are bursts of the same loss."""
UNREAD = 0.25
"""Share of the window: less is left unread for a moment by an application that keeps up."""
CHANCE = 0.001
"""Probability below which chance does not explain that unread data filled the window before each outage."""
FRAMES = 6


class Outage(NamedTuple):
    """A time in which nothing arrived.

    Attributes:
        start_ns: when the first lost segment was sent.
        end_ns: when the first segment that arrived again was sent.
        lost: segments lost meanwhile.
        tries: times at which the sender tried.
        heard: packets of the other side captured meanwhile, after a round trip: its direction worked.
        frames: frames of the first lost segments, and of the one that arrived.
        unread_share: share of the receiver's largest window that was missing from the last window before the sender
            tried again: data that its application had not read.
    """

    start_ns: int
    end_ns: int
    lost: int
    tries: int
    heard: int
    frames: tuple[int, ...]
    unread_share: float

    @property
    def duration_ns(self) -> int:
        """Time from the first lost segment to the first that arrived."""
        return self.end_ns - self.start_ns


def span_text(case: Case, start_ns: int, end_ns: int) -> str:
    """Write a span relative to the connection's start."""
    start, end = (time_text(max(ns - case.connection.start_ns, 0)) for ns in (start_ns, end_ns))
    return f"from {start} to {end} of the connection"


class Refusals(NamedTuple):
    """Times in which a receiver without memory refused everything until its application read.

    Attributes:
        times: these times.
        unread: how unlikely it is that the path was down each time.
    """

    times: tuple[Outage, ...]
    unread: LostUnread


def find_outages(case: Case) -> tuple[Outage, ...]:
    """Return the outages of the path in a direction, in order."""
    return () if find_refusals(case) is not None or lost_unread(case) is not None else _outages(case)


def find_refusals(case: Case) -> Refusals | None:
    """Return the outages if only a receiver without memory explains them, or its kernel counted what it dropped."""
    return case.reading.derive("refusals", case.connection.id, case.sender, lambda: _refusals(case))


def _outages(case: Case) -> tuple[Outage, ...]:
    return case.reading.derive("outages", case.connection.id, case.sender, lambda: _find(case))


def _find(case: Case) -> tuple[Outage, ...]:
    packets = packets_of(case)
    sent = None if packets is None else sent_of(packets, case.sender)
    if packets is None or sent is None or find_size_limit(case) is not None:
        return ()
    return tuple(_runs(case, packets, sent, sent.is_lost & ~sent.has_arrived))


def _refusals(case: Case) -> Refusals | None:
    outages, packets = _outages(case), packets_of(case)
    least = min((each.unread_share for each in outages), default=0.0)
    if packets is None or least < UNREAD:
        return None
    is_counted = bool(growth(case.host(other_side(case.sender)), *DROPPED))
    if case.data.window_shrinks >= len(outages) and not is_counted:
        return None
    import numpy as np

    peer = packets.sent_by(other_side(case.sender))
    peer = peer.of(~peer.has(SYN) & peer.has(ACK))
    # Sequence numbers may wrap around, and an ACK may overtake another.
    acked = np.maximum((np.diff(peer["ack"]) + SPACE // 2) % SPACE - SPACE // 2, 0)
    is_unread = peer["window_raw"][1:] <= (1 - least) * peer["window_raw"].max()
    arrived = float(acked[is_unread].sum() / max(int(acked.sum()), 1))
    if arrived ** len(outages) > CHANCE and not is_counted:
        return None
    return Refusals(outages, LostUnread(len(outages), len(outages), least, arrived))


def _runs(case: Case, packets: Packets, sent: Sent, lost: Flags) -> list[Outage]:
    import numpy as np

    edges = np.diff(np.concatenate(([0], lost.astype(np.int8), [0])))
    found = []
    peer = packets.sent_by(other_side(case.sender))
    round_trip_ns = case.data.rtt_smoothed_ns or case.connection.path_rtt_ns or 0
    for first, stop in zip(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1), strict=True):
        # A segment behind the run that arrived, however small, ends it; without one the path never recovered.
        if stop >= len(lost) or not sent.has_arrived[stop]:
            continue
        times = sent.time_ns[first:stop]
        tries = 1 + int((np.diff(times) > APART_NS).sum())
        start_ns, end_ns = int(times[0]), int(sent.time_ns[stop])
        if tries < FEWEST_TRIES or end_ns - start_ns < LEAST_NS:
            continue
        meanwhile = (peer["time_ns"] > start_ns + round_trip_ns + APART_NS) & (peer["time_ns"] < end_ns)
        frames = (*map(int, sent.frame[first:stop][: FRAMES - 1]), int(sent.frame[stop]))
        again_ns = int(times[np.flatnonzero(np.diff(times) > APART_NS)[0] + 1])
        unread = _unread_share(peer, again_ns)
        found.append(Outage(start_ns, end_ns, int(stop - first), tries, int(meanwhile.sum()), frames, unread))
    within = sum(each.lost for each in found)
    is_lossy = lost.sum() - within > LOSSY * (len(lost) - within)
    # A burst of losses also takes the timer's tries one after another, if it lasts for packets and not for a time.
    return [] if is_lossy and len(found) > 1 else found


def _unread_share(peer: Packets, before_ns: int) -> float:
    """Return the part of the peer's largest window that its last one before a time lacks."""
    windows = peer["window_raw"][~peer.has(SYN)]
    earlier = windows[peer["time_ns"][~peer.has(SYN)] < before_ns]
    return 1 - int(earlier[-1]) / int(windows.max()) if len(earlier) and windows.max() > 0 else 0.0
