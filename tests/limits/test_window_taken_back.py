"""A receiver that takes back its window drops data already under way, although the path loses nothing.

Linux from 6.5 on with net.ipv4.tcp_shrink_window = 1 (`__tcp_select_window`, net/ipv4/tcp_output.c) refuses data beyond
the new right edge (`tcp_data_queue` at a window of zero), and the sender takes that for loss. The comparison is the
same exchange with an open window, in which the path loses the same segments.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.story import Story

import tcpwin

MSS, WAY, SHIFT = 1460, 0.05, 7
FULL, ARRIVED, CYCLES = 40, 10, 8
"""Segments of a flight, number accepted, and number of flights."""
CLOSED = 0.4
"""Seconds until the window opens."""
PLACES = {"sender": 0.0, "receiver": 1.0}


class Exchange:
    """The client's upload, as seen at a point between it and the server."""

    def __init__(self, share: float) -> None:
        self.share = share
        self.heard: list[tuple[float, int, str, int, str, int]] = []

    def data(self, at: float, number: int, *, comes: bool = True) -> None:
        """Send a segment at a time. `comes`: it is not lost on the path."""
        if comes or self.share == 0:
            self.heard.append((round(at + WAY * self.share, 6), len(self.heard), "a", number, f"len {MSS}", 0))

    def ack(self, at: float, upto: int, window: int, sack: tuple[int, int] | None = None) -> None:
        """Deliver an ACK to the sender at a time."""
        rest = "" if sack is None else f"<sack {1 + sack[0] * MSS}:{1 + sack[1] * MSS}>"
        self.heard.append((round(at - WAY * self.share, 6), len(self.heard), "b", upto, rest, window))

    def story(self) -> Story:
        story = Story()
        story.wait(WAY * self.share)
        story.step("a", "S", "<mss 1460,sackOK,ws 7>")
        story.next["a"], story.acked["b"] = 1, 1
        story.wait(2 * WAY * (1 - self.share))
        story.step("b", "SA", "<mss 1460,sackOK,ws 7>", seq=0, ack=1)
        story.next["b"], story.acked["a"] = 1, 1
        story.window["a"], story.window["b"] = 502, OPEN
        story.wait(2 * WAY * self.share)
        story.step("a", "A")
        for at, _, side, number, rest, window in sorted(self.heard):
            story.now = max(at, story.now)
            if side == "a":
                story.step("a", "A", rest, seq=1 + number * MSS)
                story.next["a"] = max(story.next["a"], 1 + (number + 1) * MSS)
            else:
                story.ack("b", upto=1 + number * MSS, window=window, rest=rest)
        return story.close(2 * WAY)


OPEN = 60 * MSS >> SHIFT


def told(place: str, *, refused: bool, window: int) -> Story:
    """Flights whose end is dropped by the receiver, or else on the path.

    Args:
        window: raw field in the first ACK of a flight.
    """
    exchange, now, una = Exchange(PLACES[place]), 4 * WAY, 0
    for _ in range(CYCLES):
        top = una + FULL
        for number in range(una, top):
            exchange.data(now, number, comes=refused or number < una + ARRIVED)
        now += 2 * WAY
        left = una + ARRIVED
        exchange.ack(now, left, window)
        if window == 0:
            now += CLOSED
            exchange.ack(now, left, OPEN)
        # Segments sent now arrive and are reported above the missing ones.
        for number in range(top, top + 4):
            exchange.data(now, number)
            exchange.ack(now + 2 * WAY, left, OPEN, (top, number + 1))
        now += 2 * WAY
        while left < top:
            for number in range(left, left + 2):
                exchange.data(now, number)
            left += 2
            now += 2 * WAY
            whole = left >= top
            exchange.ack(now, top + 4 if whole else left, OPEN, None if whole else (top, top + 4))
        una = top + 4
        # The congestion window left after the loss.
        for flight in range(4, 12):
            for number in range(una, una + flight):
                exchange.data(now, number)
            una += flight
            now += 2 * WAY
            exchange.ack(now, una, OPEN)
    return exchange.story()


def analyzed(story: Story, folder: Path) -> tcpwin.Connection:
    [connection] = story.analyze(folder)
    return connection


@pytest.mark.parametrize("place", PLACES)
def test_segments_refused_by_the_receiver_are_not_path_loss(place: str, tmp_path: Path) -> None:
    connection = analyzed(told(place, refused=True, window=0), tmp_path)
    data, verdict = connection.a_to_b, connection.verdict
    assert data.window_shrinks == CYCLES
    assert data.retransmissions == CYCLES * (FULL - ARRIVED)
    assert (verdict.limit, verdict.side) == ("receiver_application", "server")
    assert verdict.share > 0.8
    assert data.budget_fast_recovery_ns + data.budget_after_loss_ns + data.budget_timeout_ns == 0


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("shrinks", [0, CYCLES], ids=["open", "taken back beyond all that was sent"])
def test_the_same_segments_lost_on_the_path_are_path_loss(place: str, shrinks: int, tmp_path: Path) -> None:
    window = OPEN - (ARRIVED + 5) * MSS // 128 if shrinks else OPEN
    connection = analyzed(told(place, refused=False, window=window), tmp_path)
    data = connection.a_to_b
    # The edge before the first flight is the handshake's, which is nearer.
    assert data.window_shrinks == max(shrinks - 1, 0)
    assert connection.verdict.limit in ("path_loss", "path_policer")
    assert data.budget_reader_ns == 0
