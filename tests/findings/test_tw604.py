"""TW604 one-way-capture: connections of which one side is missing, and hosts that do not answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from findings.parts import SYNS, joined, one_way
from findings.story import Story, judged

import tcpwin


def exchange(number: int) -> Story:
    """A connection from a port of its own in a second of its own, with 3 segments of a."""
    story = Story(now=float(number)).setting(f"port a {41_000 + number}").handshake(options=SYNS)
    story.burst("a", 3).wait(0.04)
    story.ack("b")
    return story.close()


def several(count: int) -> list[Story]:
    """Connections of which the first has one side only."""
    return [one_way(exchange(0)), *(exchange(number) for number in range(1, count))]


@pytest.mark.parametrize(("count", "found"), [(20, 1), (21, 0)])
def test_fires_from_one_in_twenty(tmp_path: Path, count: int, found: int) -> None:
    findings = judged(tcpwin.analyze(joined(tmp_path, several(count))), "TW604")
    assert len(findings) == found
    for finding in findings:
        assert (finding.connection, finding.blame, finding.confidence, finding.cost_ns) == (
            None,
            "capture",
            "high",
            0,
        )
        assert finding.evidence.frames == (1,)
        assert finding.evidence.values == {
            "connections_one_way": 1,
            "connections": 20,
            "share": 0.05,
            "weakens": "TW1, TW2, TW3, TW4, TW5",
        }


def test_does_not_fire_on_hosts_that_do_not_answer(tmp_path: Path) -> None:
    story = Story()
    for _ in range(3):
        story.step("a", "S", "<mss 1460>")
        story.wait(1.0)
    assert not judged(story.analyze(tmp_path), "TW604")


def test_threshold_can_be_set(tmp_path: Path) -> None:
    analysis = tcpwin.analyze(joined(tmp_path, several(3)))
    assert judged(analysis, "TW604", {"TW604.share": 0.3})
    assert not judged(analysis, "TW604", {"TW604.share": 0.4})
