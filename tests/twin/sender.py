"""The sender's view of a direction, from a capture elsewhere on the path (rule 3.4).

An ACK that passes the capture point reaches the sender, and affects its next segments here, one round trip between the
two later.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

AWAY_MIN_NS = 200_000
AWAY_SHARE = 10
"""The capture point is away from the sender if a tenth of the path is between them."""


def shift_of(near_ns: int | None, far_ns: int | None) -> int:
    """Return the delay of ACKs' effects, from the round trips of the capture point to sender and receiver."""
    if near_ns is None or far_ns is None or near_ns < max(AWAY_MIN_NS, (near_ns + far_ns) // AWAY_SHARE):
        return 0
    return near_ns


@dataclass(frozen=True, slots=True)
class Feedback:
    """New information in an ACK: SND.UNA and the window's right edge."""

    time_ns: int
    una: int
    edge: int


@dataclass(slots=True)
class SenderView:
    on_the_way: deque[Feedback] = field(default_factory=deque)
    known: Feedback | None = None

    def send(self, feedback: Feedback) -> None:
        """Process an ACK that passes the capture point."""
        self.on_the_way.append(feedback)

    def learn(self, now_ns: int, shift_ns: int) -> Feedback | None:
        """Return the sender's knowledge when it sent the segment that passes the capture point now."""
        while self.on_the_way and self.on_the_way[0].time_ns + shift_ns <= now_ns:
            self.known = self.on_the_way.popleft()
        return self.known
