"""TW607 connections-without-handshake: a capture that began late, and one incomplete connection among many."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.parts import CAPTURES, SYNS, joined
from stories.story import Story, judged, says

import tcpwin


def exchange(number: int, *, late: bool = False) -> Story:
    """A connection with a separate port and second, with or without its handshake."""
    story = Story(now=float(number)).setting(f"port a {41_000 + number}").handshake(options=SYNS)
    if late:
        story.lines = story.lines[:1]
    story.burst("a", 3).wait(0.04)
    story.ack("b")
    return story.close()


def test_fires_on_a_capture_that_began_late() -> None:
    [finding] = judged(tcpwin.analyze(CAPTURES / "lab" / "mid-connection.pcap.gz"), "TW607")
    assert (finding.connection, finding.owner, finding.confidence, finding.cost_ns) == (None, "nobody", "certain", 0)
    assert finding.evidence.frames == (1,)
    assert finding.evidence.values == {
        "connections_without_syn": 1,
        "scale_given": 0,
        "connections": 1,
        "share": 1.0,
        "weakens": "TW1, TW2",
    }


def test_says_where_snapshots_give_the_scale() -> None:
    [finding] = judged(tcpwin.analyze(CAPTURES / "bundles" / "without-syn.zip"), "TW607")
    assert finding.evidence.values["scale_given"] == 1
    assert says(finding, "the scale of 1")


@pytest.mark.parametrize(("count", "found"), [(10, 1), (11, 0)])
def test_fires_from_one_in_ten(tmp_path: Path, count: int, found: int) -> None:
    stories = [exchange(0, late=True), *(exchange(number) for number in range(1, count))]
    analysis = tcpwin.analyze(joined(tmp_path, stories))
    assert analysis.capture.connections_without_syn == 1
    assert len(judged(analysis, "TW607")) == found
    assert judged(analysis, "TW607", {"TW607.share": 0.05})


def test_does_not_fire_with_a_handshake() -> None:
    assert not judged(tcpwin.analyze(CAPTURES / "lab" / "window-scaling.pcap.gz"), "TW607")
