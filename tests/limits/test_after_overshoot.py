"""A full queue after slow start overshot it: that flight never comes back, and is not the limit.

Slow start lost a segment with 120 in flight. Since then 60 are, ten more than rate and delay hold: the path is full,
and stays full below the flight at which the loss struck. Rounds judged one by one are all the loss's doing.
"""

from __future__ import annotations

from heapq import heappop, heappush
from pathlib import Path

import pytest
from stories.story import Story

MSS, ROUND_TRIP = 1460, 0.1
SERVICE = 0.002
"""Seconds of a segment on the bottleneck: 50 of them are on the way where no queue stands."""
OVERSHOT, SEGMENTS = 120, 2500


def after_an_overshoot(held: int) -> Story:
    """The client's upload: slow start to 120 segments, of which the oldest is lost; then `held` in flight."""
    story = Story().handshake(ROUND_TRIP, scaled=(502, 4000))
    free_at, cwnd, sent, una, is_over = story.now, 10, 0, 0, False
    on_the_way: list[tuple[float, int]] = []

    def arrives() -> int:
        at, number = heappop(on_the_way)
        story.wait(max(at - story.now, 0))
        return number

    while una < SEGMENTS:
        while sent < SEGMENTS and sent - una < cwnd:
            sent += 1
            free_at = max(free_at, story.now) + SERVICE
            heappush(on_the_way, (free_at + ROUND_TRIP, sent))
            story.data("a", MSS)
        if not is_over and cwnd >= OVERSHOT:
            is_over, cwnd = True, held
            heappop(on_the_way)
            first = story.next["a"] - (sent - una) * MSS
            for count in range(1, len(on_the_way) + 1):
                upto = 1 + arrives() * MSS
                story.ack("b", first, rest=f"<sack {first + MSS}:{upto}>")
                if count == 3:
                    story.step("a", "A", f"len {MSS}", seq=first)
            story.wait(SERVICE)
            una = sent
        else:
            una = arrives()
            cwnd += 0 if is_over else 1
        story.ack("b", upto=1 + una * MSS)
    return story.close(ROUND_TRIP)


@pytest.mark.parametrize("held", [60, 90])
def test_a_path_that_is_full_below_the_overshoot_is_the_limit(held: int, tmp_path: Path) -> None:
    [connection] = after_an_overshoot(held).analyze(tmp_path)
    data, verdict = connection.a_to_b, connection.verdict
    assert data.retransmissions == 1
    assert held * MSS < data.flight_max_bytes / 1.3
    assert (verdict.limit, verdict.owner) == ("path_rate", "nobody")
    assert verdict.share > 0.75
    assert data.budget_after_loss_ns < 0.1 * connection.duration_ns
