"""A short segment without PSH does not end a write: a limit cut it, and more data follows.

A stack sets PSH on the segment that empties its buffer (RFC 9293 §3.9.1.2). Congestion windows counted in bytes, as in
BSD and Windows, leave each flight a short last segment without PSH.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path

import pytest
from stories.story import Story

import tcpwin

MSS, ROUND_TRIP, ROUNDS = 1460, 0.1, 40
FLIGHT = 13 * MSS + 1020


def flights(near: str, *, grows_by: int = 0, pushes: bool = False) -> Story:
    """The client's upload in 40 flights, one per round trip.

    Args:
        near: the host at which the capture is made.
        grows_by: bytes by which each flight exceeds the previous one.
        pushes: each flight ends a write; otherwise only the last one does.
    """
    story = Story().handshake(ROUND_TRIP, scaled=(502, 4000), near=near)
    for number in range(ROUNDS):
        left, began = FLIGHT + grows_by * number, story.now
        while left > 0:
            length = min(MSS, left)
            left -= length
            story.data("a", length, flags="PA" if left == 0 and (pushes or number == ROUNDS - 1) else "A")
            story.wait(0.0001)
        story.wait(began + ROUND_TRIP - story.now if near == "a" else 0)
        story.ack("b")
        story.wait(ROUND_TRIP if near == "b" else 0)
    return story.close(ROUND_TRIP)


def analyzed(story: Story, folder: Path) -> tcpwin.Connection:
    [connection] = story.analyze(folder)
    return connection


@pytest.mark.parametrize("near", ["a", "b"])
@pytest.mark.parametrize("grows_by", [0, MSS // 2, MSS])
def test_flights_that_end_short_are_not_the_applications(grows_by: int, near: str, tmp_path: Path) -> None:
    """The limit is the sender's: its buffer if flights are constant, otherwise its congestion window."""
    connection = analyzed(flights(near, grows_by=grows_by), tmp_path)
    data, verdict = connection.a_to_b, connection.verdict
    assert data.budget_application_ns <= 2.1 * ROUND_TRIP * 1e9, "the end of its last write, and the FIN"
    assert verdict.limit in ("send_buffer", "congestion_control", "path_rate")
    assert verdict.confidence != "certain"


@pytest.mark.parametrize("near", ["a", "b"])
def test_flights_that_end_a_write_are_the_applications(near: str, tmp_path: Path) -> None:
    connection = analyzed(flights(near, pushes=True), tmp_path)
    assert connection.verdict.limit == "sender_application"


@pytest.mark.parametrize("near", ["a", "b"])
def test_short_segments_are_counted_whatever_ends_them(near: str, tmp_path: Path) -> None:
    """A tinygram is followed by more data before its ACK, unlike the last segment of a flight."""
    connection = analyzed(flights(near), tmp_path)
    assert connection.a_to_b.tinygrams == 0
    story = Story().handshake(ROUND_TRIP, near=near)
    for _ in range(3):
        story.data("a", 100)
        story.data("a", MSS)
        story.wait(ROUND_TRIP)
        story.ack("b")
    [connection] = story.close(ROUND_TRIP).analyze(tmp_path)
    assert connection.a_to_b.tinygrams == 3


@pytest.mark.parametrize("near", ["a", "b"])
def test_a_short_segment_left_by_offload_does_not_end_a_write(near: str, tmp_path: Path) -> None:
    """Super-segments captured before the card splits them: the last of a flight is short.

    Linux defers a send until it is worth a burst (tcp_tso_should_defer, net/ipv4/tcp_output.c): the window has room
    although less than a segment was sent last.
    """
    story = Story().handshake(ROUND_TRIP, scaled=(502, 4000), near=near)
    for number in range(ROUNDS):
        began = story.now
        for length in (8 * MSS, 4 * MSS + 300, 700 + 20 * number):
            story.data("a", length, flags="A")
            story.wait(0.0001)
        story.wait(began + ROUND_TRIP - story.now if near == "a" else 0)
        story.ack("b")
        story.wait(ROUND_TRIP if near == "b" else 0)
    connection = analyzed(story.close(ROUND_TRIP), tmp_path)
    assert connection.a_to_b.max_payload_bytes == 8 * MSS
    assert connection.verdict.limit not in ("sender_application", "none")
    assert connection.a_to_b.budget_application_ns <= 2.1 * ROUND_TRIP * 1e9


SIZES = (1460, 1460, 728, 732, 1460, 4)
"""Segments of a Linux sender into a small window; short ones have PSH, but more data follows immediately."""


def into_a_small_window(window: int, *, round_trip: float = 0.008, silent: float = 0.0, segments: int = 3000) -> Story:
    """The client's upload with less than a segment of window left: its card splits the next one.

    Args:
        window: of the server, in bytes, constant.
        silent: seconds without a write after everything that fits the window was sent.
    """
    story = Story().handshake(round_trip, scaled=(502, window // 128))
    on_the_way: deque[tuple[float, int]] = deque()
    flight, number, since = 0, 0, 0
    while number < segments or on_the_way:
        length = SIZES[number % len(SIZES)]
        may_send = number < segments and flight + length + MSS <= window
        if silent and since >= len(SIZES) * 4 and on_the_way:
            may_send = False
        if not may_send:
            at, acked = on_the_way.popleft()
            story.wait(max(at - story.now, 0))
            flight -= acked
            story.ack("b", upto=story.acked["b"] + acked)
            if silent and not on_the_way:
                story.wait(silent)
                since = 0
            continue
        story.data("a", length, flags="PA" if length < MSS else "A")
        on_the_way.append((story.now + round_trip, length))
        story.wait(round_trip / 32)
        flight, number, since = flight + length, number + 1, since + 1
    return story.close(round_trip)


def test_short_pushed_segments_into_a_full_window_are_the_windows(tmp_path: Path) -> None:
    """34 kB in 8 ms: a larger window would carry more, and the sender is never silent."""
    connection = analyzed(into_a_small_window(34_304), tmp_path)
    data, verdict = connection.a_to_b, connection.verdict
    assert verdict.limit == "receiver_window"
    assert data.budget_application_ns < 0.1 * connection.duration_ns


def test_a_pause_behind_short_pushed_segments_is_the_applications(tmp_path: Path) -> None:
    connection = analyzed(into_a_small_window(34_304, silent=0.05), tmp_path)
    assert connection.verdict.limit == "sender_application"
