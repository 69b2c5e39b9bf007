"""The flight after slow start overshoots the path shows whether the path is the limit.

Slow start lost a segment with 120 in flight on a path that holds 50. A sender with 60 or 90 in flight afterwards keeps
the path full. One that stays at 20 does not: no congestion window stays that far below the loss, and four times the
rate would gain nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from pathlib import Path

import pytest
from spread import some_by_day
from stories.story import Story

import tcpwin

MSS, ROUND_TRIP = 1460, 0.1
SERVICE = 0.002
"""Serialization time of a segment on the bottleneck, in seconds: without a queue, 50 are in flight."""
OVERSHOT, SEGMENTS = 120, 2500
PLACES = {"sender": 0.0, "middle": 0.5, "receiver": 1.0}
"""The capture point: 0 is the sender's end, which has the queue, 1 the receiver's."""


def after_an_overshoot(
    held: Callable[[float], int], place: str = "sender", *, every: float = 0.0, loses: bool = True
) -> Story:
    """The client's upload: slow start to 120 segments, of which the oldest is lost; then a constant flight.

    Args:
        held: segments in flight, by round trips since the loss.
        place: one of `PLACES`.
        every: minimum seconds between two segments after the loss.
        loses: if false, slow start ends without a loss.
    """
    share = PLACES[place]
    way = ROUND_TRIP / 2
    first, now, free_at, paced_at, ends_at = 2 * way, 0.0, 0.0, 0.0, -1.0
    heard: list[tuple[float, int, str, int, str]] = []
    arriving: list[tuple[float, int, str]] = []

    def hear(at: float, side: str, number: int, rest: str) -> None:
        heard.append((at, len(heard), side, number, rest))

    def send(number: int, *, is_lost: bool = False) -> float:
        """Send a segment; return its arrival time at the receiver."""
        nonlocal free_at
        free_at = max(free_at, now) + SERVICE
        if not is_lost or share == 0:
            hear(now if share == 0 else free_at + way * share, "a", number, f"len {MSS}")
        return free_at + way

    def answer(at: float, upto: int, sack: str = "") -> None:
        hear(at + way * (1 - share), "b", upto, sack)
        heappush(arriving, (at + way, upto, sack))

    cwnd, sent, una = 10, 0, 0
    now = first
    lost, resent = -1, False
    while una < SEGMENTS:
        allowed = cwnd if ends_at < 0 else held((now - ends_at) / ROUND_TRIP)
        if ends_at >= 0 and lost >= 0:
            allowed = 0
        while sent < SEGMENTS and sent - una < allowed and (ends_at < 0 or now >= paced_at):
            # The first segment of slow start's last round trip: the flight doubles until the loss is visible.
            is_lost = loses and ends_at < 0 and lost < 0 and una > 0 and cwnd >= OVERSHOT // 2
            at = send(sent, is_lost=is_lost)
            if is_lost:
                lost = sent
            elif lost >= 0:
                answer(at, lost, f"<sack {1 + (lost + 1) * MSS}:{1 + (sent + 1) * MSS}>")
            else:
                answer(at, sent + 1)
            sent += 1
            if ends_at >= 0 and every:
                paced_at = now + every
        is_pacing = sent < SEGMENTS and sent - una < allowed
        if is_pacing and (not arriving or paced_at < arriving[0][0]):
            now = paced_at
            continue
        now, upto, sack = heappop(arriving)
        if sack and not resent:
            ends_at, resent = now, True
            whole = sent
            at = send(lost)
            heappush(arriving, (at + way, whole, ""))
            hear(at + way * (1 - share), "b", whole, "")
        if not sack and upto > una:
            una = upto
            if resent and lost >= 0:
                lost = -1
        if ends_at < 0:
            cwnd += 0 if sack else 1
            if not loses and cwnd >= OVERSHOT:
                ends_at = now
    return told(heard, share)


def told(heard: list[tuple[float, int, str, int, str]], share: float) -> Story:
    """Return the segments seen at a capture point, between a handshake and a close."""
    story = Story()
    way = ROUND_TRIP / 2
    options = "<mss 1460,sackOK,ws 7>"
    story.wait(way * share)
    story.step("a", "S", options)
    story.next["a"], story.acked["b"] = 1, 1
    story.wait(2 * way * (1 - share))
    story.step("b", "SA", options, seq=0, ack=1)
    story.next["b"], story.acked["a"] = 1, 1
    story.window["a"], story.window["b"] = 502, 4000
    story.wait(2 * way * share)
    story.step("a", "A")
    for at, _, side, number, rest in sorted(heard):
        story.now = max(at, story.now)
        if side == "a":
            story.step("a", "A", rest, seq=1 + number * MSS)
            story.next["a"] = max(story.next["a"], 1 + (number + 1) * MSS)
        else:
            story.ack("b", upto=1 + number * MSS, rest=rest)
    return story.close(ROUND_TRIP)


def analyzed(story: Story, folder: Path) -> tcpwin.Connection:
    [connection] = story.analyze(folder)
    return connection


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("held", [60, 90])
def test_a_path_that_is_full_below_the_overshoot_is_the_limit(held: int, place: str, tmp_path: Path) -> None:
    connection = analyzed(after_an_overshoot(lambda _: held, place), tmp_path)
    data, verdict = connection.a_to_b, connection.verdict
    assert data.retransmissions == 1
    assert held * MSS < data.flight_max_bytes / 1.3
    assert (verdict.limit, verdict.owner) == ("path_rate", "nobody")
    assert verdict.share > 0.75
    assert data.budget_after_loss_ns < 0.1 * connection.duration_ns


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("loses", [True, False], ids=["lost", "not lost"])
@pytest.mark.parametrize("held", some_by_day([10, 20, 30], first=1))
def test_a_flight_kept_far_below_the_path_is_not_blamed_on_it(
    held: int, loses: bool, place: str, tmp_path: Path
) -> None:
    """The packets do not show the sender's limit: at most possible."""
    connection = analyzed(after_an_overshoot(lambda _: held, place, loses=loses), tmp_path)
    data, verdict = connection.a_to_b, connection.verdict
    assert data.path_rate_bps == pytest.approx(MSS * 8 / SERVICE, rel=0.05)
    assert (verdict.limit, verdict.confidence) == ("send_buffer", "possible")
    assert data.budget_path_ns < 0.1 * connection.duration_ns
    assert data.budget_after_loss_ns < 0.15 * connection.duration_ns


@pytest.mark.parametrize("place", PLACES)
def test_one_segment_every_so_often_after_the_overshoot_is_not_the_path(place: str, tmp_path: Path) -> None:
    """Pacing at 40 % of the path's rate with 20 in flight: by the application or the sender's card."""
    connection = analyzed(after_an_overshoot(lambda _: 100, place, every=SERVICE * 2.5), tmp_path)
    assert connection.verdict.limit not in ("path_rate", "path_loss")
    assert connection.verdict.confidence == "possible"


@pytest.mark.parametrize("place", PLACES)
def test_pacing_at_the_paths_rate_above_a_small_queue_is_the_path(place: str, tmp_path: Path) -> None:
    """BBR paces at the path's rate, with a window of twice rate × delay."""
    connection = analyzed(after_an_overshoot(lambda _: 100, place, every=SERVICE), tmp_path)
    assert connection.verdict.limit == "path_rate"
    assert connection.verdict.share > 0.75


def test_a_window_that_grows_back_is_the_paths_and_does_not_use_it_all(tmp_path: Path) -> None:
    """Reno with delayed ACKs, from 10 segments: the queue takes the rest, and four times the rate makes it longer."""
    connection = analyzed(after_an_overshoot(lambda rounds: int(10 + rounds / 2)), tmp_path)
    verdict = connection.verdict
    assert (verdict.limit, verdict.owner) == ("path_rate", "nobody")
    assert "uses all" not in verdict.text
    assert "It had at most 3.5" in verdict.text
    assert "of the path's 5.79 Mbit/s: its queue is shared, or it has not grown back" in verdict.text


@pytest.mark.parametrize("place", PLACES)
def test_slow_start_that_ends_early_and_grows_on_is_the_congestion_window(place: str, tmp_path: Path) -> None:
    """HyStart ended at 20 of the path's 50 segments; the window then grows by half a segment per round trip without
    loss.
    """
    connection = analyzed(after_an_overshoot(lambda rounds: int(20 + rounds / 2), place, loses=False), tmp_path)
    assert connection.verdict.limit == "congestion_control"
