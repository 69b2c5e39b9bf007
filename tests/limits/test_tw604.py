"""TW604 one-way-capture: connections with only one captured side, and hosts that do not answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.parts import SYNS, joined, one_way
from stories.story import Story, judged

import tcpwin


def exchange(number: int) -> Story:
    """Return a connection with its own port, begun at its own second, with 3 segments of a."""
    story = Story(now=float(number)).setting(f"port a {41_000 + number}").handshake(options=SYNS)
    story.burst("a", 3).wait(0.04)
    story.ack("b")
    return story.close()


def several(count: int) -> list[Story]:
    """Connections, the first ones with one side only."""
    return [one_way(exchange(0)), *(exchange(number) for number in range(1, count))]


@pytest.mark.parametrize(("count", "found"), [(20, 1), (21, 0)])
def test_fires_from_one_in_twenty(tmp_path: Path, count: int, found: int) -> None:
    findings = judged(tcpwin.analyze(joined(tmp_path, several(count))), "TW604")
    assert len(findings) == found
    for finding in findings:
        assert (finding.owner, finding.confidence) == ("nobody", "certain")
        assert (finding.connection, finding.cost_ns) == (None, 0)
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


def test_a_receiver_alone_counts_as_answered(tmp_path: Path) -> None:
    """A host that only acknowledges was answered, although it has no handshake or refusal."""
    story = Story(now=0.0).handshake(options=SYNS)
    for _ in range(5):
        story.burst("b", 2)
        story.wait(0.2)
        story.ack("a")
        story.wait(0.2)
    for last in ("FA", "RA"):
        other = Story(now=story.now, next=dict(story.next), acked=dict(story.acked), lines=list(story.lines))
        other.step("a", last)
        analysis = tcpwin.analyze(joined(tmp_path, [one_way(other)]))
        assert judged(analysis, "TW604")
        [connection] = analysis.connections
        assert connection.close == {"FA": "half_closed", "RA": "reset"}[last]
        assert connection.b_to_a.budget_handshake_ns == 0
        assert connection.b_to_a.budget_unknown_ns == connection.duration_ns > 0
        assert connection.verdict.limit == "capture"
