"""TW310 acks-lost: missing ACKs, by their numbers; a capture that also lost data; and complete ACKs."""

from __future__ import annotations

from pathlib import Path

from stories.story import Story, judged

import tcpwin
from tcpwin.limits import Severity

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = ("<mss 1460,ws 7>", "<mss 1460,ws 7>")


def thinned(rounds: int, missing: int, *, hole: bool = False) -> Story:
    """Rounds of four segments and two numbered ACKs; in the first rounds the first ACK is missing."""
    story = Story().handshake(options=OPTIONS).wait(0.001)
    number = 7000
    for each in range(rounds):
        first = story.next["a"]
        story.burst("a", 4).wait(0.04)
        if each >= missing:
            story.ack("b", first + 2 * 1460, rest=f"ipid {number}")
        story.wait(0.0001).ack("b", rest=f"ipid {number + 1}")
        number += 2
        story.wait(0.01)
    if hole:
        story.next["a"] += 1460
        story.burst("a", 1).wait(0.04)
        story.ack("b", rest=f"ipid {number}")
    return story


def test_fires_on_missing_acks(tmp_path: Path) -> None:
    analysis = thinned(40, 12).analyze(tmp_path)
    [finding] = judged(analysis, "TW310")
    assert (finding.direction, finding.side, finding.owner, finding.confidence) == ("a_to_b", None, "network", "likely")
    assert (finding.cost_ns, finding.severity) == (0, Severity.INFO)
    data = analysis.connections[0].a_to_b
    # 80 ACKs minus the missing ones, and the SYN/ACK. The gap before the first ACK has no number to compare with.
    assert finding.evidence.values == {
        "acks_missing": 11,
        "segments_back": 69,
        "stretch_acks_after_loss": data.stretch_acks_after_loss,
    }


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # Fewer than ten.
    analysis = thinned(40, 10).analyze(tmp_path)
    assert analysis.connections[0].a_to_b.acks_missing == 9
    assert not judged(analysis, "TW310")
    assert judged(analysis, "TW310", {"TW310.acks": 9})
    # Small share: 11 of 480 are 2.3 %.
    assert not judged(thinned(240, 12).analyze(tmp_path), "TW310")
    # The capture lost data.
    analysis = thinned(40, 12, hole=True).analyze(tmp_path)
    assert analysis.connections[0].a_to_b.missed_bytes == 1460
    assert not judged(analysis, "TW310")
    # All data arrived.
    for name in ("lab/loss-1-percent.pcap.gz", "lab/window-scaling.pcap.gz", "wild/forwarded-any.pcap.zst"):
        assert not judged(tcpwin.analyze(ROOT / "captures" / name), "TW310")
