"""TW414 shaped-upstream: segments that arrive evenly spaced out of a queue, and segments that were sent so."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.story import Story, judged

OPTIONS = ("<mss 1460,sackOK,ts 1000 0,ws 7>", "<mss 1460,sackOK,ts 5000 1000,ws 7>")
GAP_S = 0.0122
ALL = {"TW414.application_ns": 0.0}


def spaced(sender: str, how: str) -> Story:
    """300 segments of 1,448 bytes that arrive 12.2 ms apart near the receiver, which acknowledges each at once.

    They were sent in bursts of ten, or one by one into a queue of up to 120 ms, or as they arrive.
    """
    story = Story().handshake(0.03, options=OPTIONS, near="b" if sender == "a" else "a")
    peer = "a" if sender == "b" else "b"
    begun = 0.0
    for number in range(300):
        if number % 10 == 0:
            begun = story.now
        queued_s = 0.004 * abs(30 - number % 60)
        sent_s = {"bursts": begun, "queue": max(story.now - queued_s, 0), "evenly": story.now}[how]
        stamp = 1000 + round(1000 * sent_s)
        story.data(sender, 1448, rest=f"<ts {stamp} 5000>")
        story.wait(0.0001).ack(peer, rest=f"<ts {5000 + round(1000 * story.now)} {stamp}>")
        story.wait(GAP_S - 0.0001)
    return story


@pytest.mark.parametrize("sender", ["a", "b"])
@pytest.mark.parametrize("how", ["bursts", "queue"])
def test_segments_that_a_queue_spaced(tmp_path: Path, sender: str, how: str) -> None:
    analysis = spaced(sender, how).analyze(tmp_path)
    found = [each for each in judged(analysis, "TW414", ALL) if each.direction == f"{sender}_to_{'ba'[sender == 'b']}"]
    assert len(found) == 1
    assert found[0].evidence.values["rate_bps"] == pytest.approx(1448 * 8 / GAP_S, rel=0.02)
    assert (found[0].owner, str(found[0].severity)) == ("nobody", "info")
    assert not analysis.connections[0].verdict.is_problem


@pytest.mark.parametrize("sender", ["a", "b"])
def test_an_application_that_writes_evenly(tmp_path: Path, sender: str) -> None:
    assert not judged(spaced(sender, "evenly").analyze(tmp_path), "TW414", ALL)
