"""Random losses that cost nothing, because the sender (like BBR) keeps the path full.

80 segments are in flight on a path that holds 40, so a queue stands, and 1 % of the segments are lost. Each is
retransmitted once three later ones were reported, and nothing slows down. Most of the time is recovery, but without the
losses the transfer would have ended hardly sooner.
"""

from __future__ import annotations

from heapq import heappop, heappush
from pathlib import Path
from random import Random

import pytest
from stories.story import Story

MSS, ROUND_TRIP, SERVICE = 1460, 0.04, 0.001
FLIGHT, SEGMENTS = 80, 6000


def through_losses(lost_of: int, *, flight: int = FLIGHT) -> Story:
    """The client's upload of 6,000 segments, captured at the client.

    Args:
        lost_of: one of this many segments is lost at random on its first transmission; 0 loses none.
        flight: segments in flight after slow start.
    """
    story = Story().handshake(ROUND_TRIP, scaled=(502, 16_000))
    free_at = story.now
    arrivals: list[tuple[float, int]] = []
    held: set[int] = set()
    upto, una, sent, cwnd, pipe = 0, 0, 0, 10, 0
    lost = set(Random(1).sample(range(SEGMENTS), SEGMENTS // lost_of)) if lost_of else set()
    reported: dict[int, int] = {}
    resent: set[int] = set()

    def send(number: int) -> None:
        nonlocal free_at, pipe
        pipe += 1
        free_at = max(free_at, story.now) + SERVICE
        if number in lost and number not in resent:
            return
        heappush(arrivals, (free_at + ROUND_TRIP, number))

    while una < SEGMENTS:
        while sent < SEGMENTS and pipe < min(cwnd, flight):
            sent += 1
            story.data("a", MSS, flags="PA" if sent == SEGMENTS else "A")
            send(sent - 1)
        at, number = heappop(arrivals)
        story.wait(max(at - story.now, 0))
        pipe, cwnd = pipe - 1, cwnd + 1
        held.add(number)
        while upto in held:
            held.remove(upto)
            upto += 1
        blocks = runs(held, number)
        rest = " ".join(f"{1 + first * MSS}:{1 + last * MSS}" for first, last in blocks)
        story.ack("b", upto=1 + upto * MSS, rest=f"<sack {rest}>" if rest else "")
        una = upto
        for hole in holes(held, una, resent):
            reported[hole] = reported.get(hole, 0) + 1
            if reported[hole] >= 3 + 1:
                # Three later segments were reported.
                resent.add(hole)
                pipe -= 1
                story.step("a", "A", f"len {MSS}", seq=1 + hole * MSS)
                send(hole)
    return story.close(ROUND_TRIP)


def runs(held: set[int], newest: int) -> list[tuple[int, int]]:
    """Return SACK blocks, that of the newest segment first; at most three."""
    found: list[tuple[int, int]] = []
    for number in sorted(held):
        if found and found[-1][1] == number:
            found[-1] = (found[-1][0], number + 1)
        else:
            found.append((number, number + 1))
    return sorted(found, key=lambda each: not each[0] <= newest < each[1])[:3]


def holes(held: set[int], una: int, resent: set[int]) -> list[int]:
    """Return the missing numbers below the newest reported one that were not retransmitted."""
    return [number for number in range(una, max(held, default=una)) if number not in held and number not in resent]


def test_recovery_on_a_full_path_is_not_the_limit(tmp_path: Path) -> None:
    [connection] = through_losses(100).analyze(tmp_path)
    data, verdict = connection.a_to_b, connection.verdict
    assert data.retransmissions == SEGMENTS // 100
    assert data.recovery_ns > 0.3 * connection.duration_ns, "long in recovery"
    assert (verdict.limit, verdict.owner, verdict.fix) == ("path_rate", "nobody", None)
    assert data.budget_fast_recovery_ns < 0.05 * connection.duration_ns
    assert not [each for each in connection.findings if each.remedy and "bbr" in str(each.remedy.settings)]
    # The true cost of the losses: the same transfer without any.
    [free] = through_losses(0).analyze(tmp_path)
    assert connection.duration_ns == pytest.approx(free.duration_ns, rel=0.03)


def test_the_same_losses_far_below_the_path_are_not_the_paths(tmp_path: Path) -> None:
    """With 10 segments in flight nothing queues, and the path has room for four times the rate."""
    [connection] = through_losses(100, flight=10).analyze(tmp_path)
    assert connection.verdict.limit != "path_rate"
