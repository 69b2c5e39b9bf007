"""Detect a receiver that drops data it had offered room for, from where the lost segments lay in its window.

In: a case. Out: RefusedNearEdge, or None. A path loses segments wherever they lie in the window; a receiver that runs
out of memory loses those for which unread data left no memory, although the window still had room for them.
"""

from __future__ import annotations

from typing import NamedTuple

from tcpwin.limits.case import Case

FEWEST = 5
"""Fewer losses may lie near the edge by chance."""
LOST_SHARE = 0.9
"""Share of the lost segments that must have met such a window."""
CHANCE = 0.01
"""Probability that a path that loses anywhere would have lost there each time."""


class RefusedNearEdge(NamedTuple):
    """Lost segments that met a nearly full buffer.

    Attributes:
        lost: lost segments; `near` of them ended near the right edge of a window that unread data had filled.
        sent_share: share of all data sent with the same position.
        times: different times at which segments near the edge were lost.
    """

    lost: int
    near: int
    sent_share: float
    times: int

    @property
    def is_shown(self) -> bool:
        """Whether the position explains the losses."""
        return self.near >= LOST_SHARE * self.lost and self.sent_share**self.times <= CHANCE

    @property
    def text(self) -> str:
        """Describe the evidence as the rest of a sentence."""
        return (
            f"{self.near:,} of {self.lost:,} lost segments ended near the edge of a window that unread data had mostly "
            f"filled, as did {self.sent_share:.0%} of all data"
        )


def refused_near_edge(case: Case) -> RefusedNearEdge | None:
    """Return the losses that only a receiver short of memory explains, or None if the path may have lost them."""
    data = case.data
    lost, sent = data.first_losses, data.unique_bytes
    if lost < FEWEST or not sent:
        return None
    # A receiver that takes back its window drops what lies beyond it, for want of a reader and not of memory.
    if data.window_shrinks >= data.lost_near_edge_times:
        return None
    found = RefusedNearEdge(lost, data.lost_near_edge, data.sent_near_edge_bytes / sent, data.lost_near_edge_times)
    return found if found.is_shown else None
