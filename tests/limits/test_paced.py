"""A sender that paces below one segment per round trip, compared with applications that send as little.

At 2.5 Mbit/s a segment of 1,460 bytes takes 4.7 ms. Over a round trip of 1 ms nothing is in flight for most of that,
whatever the send buffer contains.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.story import Story

import tcpwin

MSS = 1460


def one_by_one(folder: Path, sizes: list[int], gap: float, *, pause: tuple[int, float] = (-1, 0.0)) -> tcpwin.Verdict:
    """The client's upload as captured there: a segment of each size every `gap` seconds, acknowledged after 1 ms."""
    story = Story().handshake(0.001)
    for number, size in enumerate(sizes):
        story.data("a", size)
        story.wait(0.001).ack("b")
        story.wait(gap - 0.001 + (pause[1] if number == pause[0] else 0))
    [connection] = story.close(0.001).analyze(folder)
    assert connection.a_to_b.budget_application_ns > 0.7 * connection.duration_ns, "nothing is in flight"
    return connection.verdict


@pytest.mark.parametrize("gap", [0.0047, 0.012, 0.09])
def test_full_segments_one_by_one_may_be_paced(tmp_path: Path, gap: float) -> None:
    verdict = one_by_one(tmp_path, [MSS] * 200 + [700], gap)
    assert (verdict.limit, verdict.confidence) == ("sender_application", "possible")
    assert "or paced its segments" in verdict.text
    assert "every segment is full" in verdict.reason


def test_writes_that_end_within_a_segment_are_the_applications(tmp_path: Path) -> None:
    """Every third segment is short: 3,620 bytes were written, followed by an equally long pause."""
    verdict = one_by_one(tmp_path, [MSS, MSS, 700] * 67, 0.0047)
    assert (verdict.limit, verdict.confidence) == ("sender_application", "certain")


def test_a_pause_longer_than_the_timeout_is_the_applications(tmp_path: Path) -> None:
    """No pacing rate sends one segment in twenty seconds."""
    verdict = one_by_one(tmp_path, [MSS] * 200, 0.0047, pause=(100, 20.0))
    assert (verdict.limit, verdict.confidence) == ("sender_application", "certain")


def test_a_few_segments_show_no_pacing(tmp_path: Path) -> None:
    verdict = one_by_one(tmp_path, [MSS] * 8, 0.0047)
    assert (verdict.limit, verdict.confidence) == ("sender_application", "certain")
