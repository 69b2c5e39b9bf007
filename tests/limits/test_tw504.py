"""TW504 half-open: a side that never closes, a host that is gone, and a capture that ends soon after the FIN."""

from __future__ import annotations

from pathlib import Path

import ladder
import pytest
from stories.parts import SYNS, joined
from stories.story import Story, blame, judged, says

import tcpwin

SECOND = 1_000_000_000
CLOSE_WAIT = """### 1600000030.000000
State      Recv-Q Send-Q Local Address:Port Peer Address:Port
CLOSE-WAIT 1      0      10.0.0.2:9000      10.0.0.1:40000
\t cubic wscale:7,7 rto:204 rtt:40/20 mss:1460 cwnd:10 bytes_received:1460
"""


def half_closed() -> Story:
    """a sends a segment and its FIN at 0.08 s; b acknowledges both at 0.12 s."""
    story = Story().handshake(0.04, options=SYNS)
    story.data("a")
    story.wait(0.04).step("a", "FA")
    story.next["a"] += 1
    story.wait(0.04)
    story.ack("b")
    return story


def other(end: float) -> Story:
    """A connection to another port that ends at that time."""
    return (
        Story(now=end - 0.08).setting("port a 45000").setting("port b 9001").handshake(0.04, options=SYNS).close(0.04)
    )


def test_fires_on_a_side_that_does_not_close(tmp_path: Path) -> None:
    analysis = tcpwin.analyze(joined(tmp_path, [half_closed(), other(75.12)]))
    [finding] = judged(analysis, "TW504")
    assert blame(finding) == (None, "server", "server_application", "likely")
    assert finding.connection == 0
    # SYN, SYN/ACK, ACK, data, then the FIN.
    assert finding.evidence.frames == (5,)
    assert finding.evidence.start_ns == ladder.START_NS + 120_000_000
    assert finding.evidence.end_ns == ladder.START_NS + 75_120_000_000
    assert finding.evidence.values == {"silent_ns": 75 * SECOND, "fin_retransmissions": 0, "closed_first": "a"}
    assert says(finding, "the server has not for 75 s", "its application")


def test_is_sure_with_the_kernel(tmp_path: Path) -> None:
    path = joined(tmp_path, [half_closed(), other(75.12)])
    (tmp_path / "ss_server.txt").write_text(CLOSE_WAIT, encoding="utf8")
    [finding] = judged(tcpwin.analyze(path, snapshots=[tmp_path / "ss_server.txt"]), "TW504")
    assert (finding.owner, finding.confidence) == ("server_application", "certain")


def test_reports_a_host_that_is_gone(tmp_path: Path) -> None:
    story = Story().handshake(0.04, options=SYNS)
    story.data("a")
    story.wait(0.04)
    story.ack("b")
    for wait in (0.04, 0.3, 0.6, 1.2):
        story.wait(wait).step("a", "FA")
    [finding] = judged(tcpwin.analyze(joined(tmp_path, [story, other(70.0)])), "TW504")
    assert (finding.side, finding.owner, finding.confidence) == ("server", "network", "likely")
    assert finding.evidence.frames == (6, 7, 8)
    assert finding.evidence.values["fin_retransmissions"] == 3


@pytest.mark.parametrize(("end", "found"), [(60.11, 0), (60.13, 1)])
def test_waits_for_a_minute(tmp_path: Path, end: float, found: int) -> None:
    analysis = tcpwin.analyze(joined(tmp_path, [half_closed(), other(end)]))
    assert len(judged(analysis, "TW504")) == found
    assert judged(analysis, "TW504", {"TW504.silent_ns": 1e9})
