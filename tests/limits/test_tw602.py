"""TW602 capture-duplicates: a capture on two interfaces, and a few copies."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.parts import CAPTURES, SYNS
from stories.story import Story, judged

import tcpwin


def test_fires_on_a_capture_of_both_sides_of_a_router() -> None:
    [finding] = judged(tcpwin.analyze(CAPTURES / "wild" / "forwarded-any.pcap.zst"), "TW602")
    assert (finding.connection, finding.owner, finding.confidence, finding.cost_ns) == (None, "nobody", "certain", 0)
    # Each packet is followed by its copy.
    assert finding.evidence.frames == (2, 4, 6, 8, 10, 12)
    assert finding.evidence.values == {"capture_duplicates": 411, "segments": 822, "share": 0.5, "weakens": "none"}


def copies(count: int) -> Story:
    """A handshake, 96 segments, of which the first ones appear twice, and an ACK."""
    story = Story().handshake(options=SYNS)
    for number in range(96):
        story.data("a")
        if number < count:
            story.wait(0.00001).lines.append(f"{story.now:.9f} a > b copy ttl 63")
        story.wait(0.0001)
    story.wait(0.04).ack("b")
    return story


@pytest.mark.parametrize(("count", "found"), [(0, 0), (1, 0), (2, 1)])
def test_fires_from_one_in_a_hundred(tmp_path: Path, count: int, found: int) -> None:
    analysis = copies(count).analyze(tmp_path)
    assert analysis.capture.capture_duplicates == count
    assert len(judged(analysis, "TW602")) == found
    if count == 1:
        assert judged(analysis, "TW602", {"TW602.share": 0.005})
