"""Detect a receiver that drops data it had offered room for, from what was unread when data was lost.

In: a case. Out: LostUnread, or None. A path loses segments whatever the receiver has read; a receiver that runs out of
memory loses those that arrive while unread data takes it, although the window still has room for them.
"""

from __future__ import annotations

from typing import NamedTuple

from tcpwin.limits.case import Case
from tcpwin.units import count_text, share_text

FEWEST_TIMES = 2
"""A single loss may meet a filled window by chance."""


class LostUnread(NamedTuple):
    """Losses that met a buffer with much unread data.

    Attributes:
        times: times at which data was lost; at `unread` of them, unread data filled `unread_share` of the window.
        arrived_share: share of all data that arrived while so much was unread.
    """

    times: int
    unread: int
    unread_share: float
    arrived_share: float

    @property
    def share(self) -> float:
        """Share of the losses that it explains."""
        return self.unread / self.times

    @property
    def text(self) -> str:
        """Describe the evidence as the rest of a sentence."""
        which = "each of" if self.unread == self.times else f"{self.unread:,} of"
        return (
            f"{which} {count_text(self.times, 'loss', 'losses')} occurred when unread data filled "
            f"{share_text(self.unread_share)} of the window or more, as it did for {share_text(self.arrived_share)} of "
            "all data"
        )


def lost_unread(case: Case) -> LostUnread | None:
    """Return the losses that a receiver short of memory explains and a path does not, if they are most losses."""
    data = case.data
    times, unread = data.loss_times, data.loss_times_unread
    if unread < FEWEST_TIMES or unread <= times / 2:
        return None
    # A receiver that takes back its window drops what lies beyond it, for want of a reader and not of memory.
    if data.window_shrinks >= unread:
        return None
    return LostUnread(times, unread, data.loss_unread_share or 0.0, data.loss_unread_arrived_share or 0.0)
