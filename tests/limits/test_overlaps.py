"""Overlapping times in a direction count once: a timeout within recovery is one recovery and one timeout."""

from __future__ import annotations

from pathlib import Path

from stories.story import Story

MSS = 1460


def test_a_timeout_within_recovery_is_one_time(tmp_path: Path) -> None:
    """Fast recovery's retransmission is lost; the timer resends it twice, then everything arrives."""
    story = Story().handshake()
    story.burst("a", 10, spacing=0).wait(0.04)
    story.ack("b")
    lost = story.next["a"]
    story.burst("a", 10, spacing=0).wait(0.04)
    for count in range(1, 10):
        story.ack("b", lost, rest=f"<sack {lost + MSS}:{lost + (count + 1) * MSS}>")
    began = story.now
    for wait in (0.0, 0.3, 0.6):
        story.wait(wait)
        story.step("a", "A", f"len {MSS}", seq=lost)
    story.wait(0.04)
    story.ack("b")
    ended = story.now
    [connection] = story.wait(0.01).close().analyze(tmp_path)
    data = connection.a_to_b
    assert (data.recoveries, data.rto_retransmissions) == (1, 2)
    assert abs(data.recovery_ns - (ended - began) * 1e9) <= 2
    assert data.budget_fast_recovery_ns + data.budget_timeout_ns <= data.recovery_ns + 2
    assert sum(connection.budget["a_to_b"].items_ns.values()) == connection.duration_ns
