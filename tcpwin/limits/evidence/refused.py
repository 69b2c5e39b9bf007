"""Detect a receiver that drops data it had offered room for, from where the lost segments lay in its window.

In: a case. Out: RefusedNearEdge, or None. A path loses segments wherever they lie in the window; a receiver that runs
out of memory loses those for which unread data left no memory, although the window still had room for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tcpwin.analysis import Event
from tcpwin.limits.case import Case
from tcpwin.limits.evidence.capture import table_of
from tcpwin.limits.evidence.events import events_of

FEWEST = 5
"""Fewer losses may lie near the edge by chance."""
FILLED = 0.5
"""Share of its maximum below which unread data fills most of the receiver's buffer."""
NEAR = 0.1
"""Distance to the window's right edge, as a share of the window's maximum, that counts as near."""
LOST_SHARE = 0.9
"""Share of the lost segments that must have met such a window; of the others at most `OTHER_SHARE` may have."""
OTHER_SHARE = 0.5
HALF = 0.5
TIMES_OTHERS = 5.0
"""Half of the lost segments suffice if that is so many times the others' share, at `FEWEST_TIMES` different times."""
FEWEST_TIMES = 3
APART_NS = 1_000_000_000


class RefusedNearEdge(NamedTuple):
    """Lost segments that met a nearly full buffer.

    Attributes:
        lost: lost segments; `near` of them ended near the right edge of a window that unread data had filled.
        other_share: share of the segments that arrived with the same position.
        times: different times at which segments near the edge were lost.
    """

    lost: int
    near: int
    other_share: float
    times: int

    @property
    def is_shown(self) -> bool:
        """Whether the position explains the losses."""
        share = self.near / self.lost
        if share >= LOST_SHARE:
            return self.other_share <= OTHER_SHARE
        return share >= HALF and share >= TIMES_OTHERS * self.other_share and self.times >= FEWEST_TIMES

    @property
    def text(self) -> str:
        """Describe the evidence as the rest of a sentence."""
        return (
            f"{self.near:,} of {self.lost:,} lost segments ended near the edge of a window that unread data had mostly "
            f"filled, as did {self.other_share:.0%} of those that arrived"
        )


def refused_near_edge(case: Case) -> RefusedNearEdge | None:
    """Return the losses that only a receiver short of memory explains, or None if the path may have lost them."""
    return case.reading.derive("refused near edge", case.connection.id, case.sender, lambda: _find(case))


def _find(case: Case) -> RefusedNearEdge | None:
    data = case.data
    most, waited_ns = data.receive_window_max_bytes, data.window_limited_ns + data.zero_window_ns
    if not most or not waited_ns or data.resent_segments < FEWEST or not case.are_few:
        return None
    # After a timeout the sender resends everything, including data that was not lost.
    events = [
        event
        for event in events_of(case, side=case.sender)
        if event.cause not in (None, "go_back_n") and event.original_frame
    ]
    return _positions(case, events, most) if len(events) >= FEWEST else None


def _positions(case: Case, events: Sequence[Event], most: int) -> RefusedNearEdge | None:
    table = table_of(case)
    if table is None:
        return None
    import numpy as np

    lost = np.isin(table["frame"], [event.original_frame or 0 for event in events])
    is_data = (table["direction"] == case.sender) & (table["length"] > 0)
    windows = np.ma.asarray(table["window"])
    is_ack = (table["direction"] == case.receiver) & ~np.ma.getmaskarray(windows)
    latest = np.maximum.accumulate(np.where(is_ack, np.arange(table.height), -1))
    known = is_data & (latest >= 0)
    at = latest[known]
    window = np.ma.getdata(windows)[at].astype(np.int64)
    acks = np.ma.getdata(np.ma.asarray(table["ack"])).astype(np.int64)[at]
    ends = table["seq"].astype(np.int64)[known] + table["length"].astype(np.int64)[known]
    room = (acks + window - ends + (1 << 31)) % (1 << 32) - (1 << 31)
    near = (window <= FILLED * most) & (room <= NEAR * most)
    was_lost = lost[known]
    # One segment that is lost again and again is one position in the window.
    _, places = np.unique(ends[was_lost], return_index=True)
    only = np.flatnonzero(was_lost)[places]
    kept = ~was_lost
    kept[only] = True
    near, was_lost = near[kept], was_lost[kept]
    counts = int(was_lost.sum()), int((~was_lost).sum())
    if counts[0] < FEWEST or not counts[1]:
        return None
    when = np.sort(table["time_ns"].astype(np.int64)[known][kept][near & was_lost])
    times = 1 + int((np.diff(when) > APART_NS).sum()) if len(when) else 0
    found = RefusedNearEdge(counts[0], int(near[was_lost].sum()), float(near[~was_lost].mean()), times)
    return found if found.is_shown else None
