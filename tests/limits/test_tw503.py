"""TW503 connection-unanswered: unanswered SYNs, and one cut off by the end of the capture."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.parts import SYNS, joined
from stories.story import Story, judged, says

import tcpwin


def silence(times: tuple[float, ...], port: int = 41_000) -> Story:
    """A SYN and its copies at these times."""
    story = Story().setting(f"port a {port}")
    for time in times:
        story.now = time
        story.step("a", "S", "<mss 1460>")
    return story


def other(end: float) -> Story:
    """Add a connection to another port, to show that the capture continues."""
    story = Story(now=end - 0.08).setting("port a 45000").setting("port b 9001")
    return story.handshake(0.04, options=SYNS).close(0.04)


def test_fires_on_syns_sent_again(tmp_path: Path) -> None:
    path = joined(tmp_path, [silence((0.0, 1.0, 3.0, 7.0)), silence((0.5, 1.5, 3.5), 41_001)])
    [finding] = judged(tcpwin.analyze(path), "TW503")
    assert (finding.side, finding.owner, finding.confidence) == ("server", "network", "likely")
    assert finding.connection is None
    assert finding.cost_ns == 10_000_000_000
    assert finding.evidence.frames == (1, 2)
    assert finding.evidence.values == {
        "port": "10.0.0.2:9000",
        "unanswered": 2,
        "accepted": 0,
        "syn_retransmissions": 5,
        "quoted_in_icmp": 0,
    }
    assert says(finding, "10.0.0.2:9000", "2 connections", "5 SYNs", "10 s")


def test_is_less_sure_where_others_were_answered(tmp_path: Path) -> None:
    answered = Story(now=9.0).setting("port a 41005").handshake(options=SYNS).close()
    [finding] = judged(tcpwin.analyze(joined(tmp_path, [silence((0.0, 1.0)), answered])), "TW503")
    assert (finding.owner, finding.confidence, finding.evidence.values["accepted"]) == ("server_host", "possible", 1)


@pytest.mark.parametrize(("end", "found"), [(0.9, 0), (1.1, 1)])
def test_waits_for_the_first_timeout(tmp_path: Path, end: float, found: int) -> None:
    findings = judged(tcpwin.analyze(joined(tmp_path, [silence((0.0,)), other(end)])), "TW503")
    assert len(findings) == found
    assert all(says(finding, "10.0.0.2:9000", "1 connection", "1 s") for finding in findings)


def test_does_not_fire_on_a_lost_syn(tmp_path: Path) -> None:
    story = Story()
    story.step("a", "S", "<mss 1460>")
    story.wait(1.0).handshake(options=SYNS).close()
    assert not judged(story.analyze(tmp_path), "TW503")


def test_threshold_can_be_set(tmp_path: Path) -> None:
    analysis = tcpwin.analyze(joined(tmp_path, [silence((0.0,)), other(0.9)]))
    assert judged(analysis, "TW503", {"TW503.wait_ns": 500_000_000})
