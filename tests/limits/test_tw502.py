"""TW502 connection-refused: several connections to one port, and two."""

from __future__ import annotations

from pathlib import Path

from stories.parts import CAPTURES, SYNS, joined
from stories.story import Story, blame, judged, says

import tcpwin


def refused(count: int, *, accepted: int = 0) -> list[Story]:
    """Connections from separate ports, a second apart, each refused after 40 ms; then some that are accepted."""
    stories = []
    for number in range(count + accepted):
        story = Story(now=float(number)).setting(f"port a {41_000 + number}")
        if number < count:
            story.step("a", "S", "<mss 1460>")
            story.wait(0.04).step("b", "RA", seq=0, ack=1)
        else:
            story.handshake(options=SYNS).close()
        stories.append(story)
    return stories


def test_fires_on_five_to_a_closed_port() -> None:
    [finding] = judged(tcpwin.analyze(CAPTURES / "wild" / "many-short.pcap.gz"), "TW502")
    assert blame(finding) == (None, "server", "server_application", "likely")
    assert finding.connection is None
    # From each SYN to its RST: 11, 6, 73, 7 and 7 µs.
    assert finding.cost_ns == 104_000
    assert finding.evidence.frames == (738, 740, 742, 744, 746)
    assert finding.evidence.values == {"port": "127.0.0.1:8084", "refused": 5, "accepted": 0}
    assert says(finding, "127.0.0.1:8084 refused 5 connections", "nothing seems to listen")


def test_says_that_others_were_accepted(tmp_path: Path) -> None:
    [finding] = judged(tcpwin.analyze(joined(tmp_path, refused(3, accepted=2))), "TW502")
    assert finding.cost_ns == 3 * 40_000_000
    assert finding.evidence.frames == (1, 3, 5)
    assert finding.evidence.values == {"port": "10.0.0.2:9000", "refused": 3, "accepted": 2}


def test_does_not_fire_on_two(tmp_path: Path) -> None:
    analysis = tcpwin.analyze(joined(tmp_path, refused(2)))
    assert not judged(analysis, "TW502")
    assert judged(analysis, "TW502", {"TW502.connections": 2})
