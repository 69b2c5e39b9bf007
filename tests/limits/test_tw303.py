"""TW303 spurious-retransmissions: a reordering path that looks lossy, and real losses."""

from __future__ import annotations

from pathlib import Path

from stories.story import Story, blame, judged

import tcpwin
from tcpwin.limits import Severity

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = ("<mss 1460,sackOK>", "<mss 1460,sackOK>")


def doubled(times: int, *, full: int = 20) -> Story:
    """Each round: 5 segments, three duplicate ACKs, the first segment again, then its DSACK."""
    story = Story().handshake(options=OPTIONS, scaled=(64_240, 65_160)).wait(0.001)
    for _ in range(times):
        first = story.next["a"]
        story.burst("a", 5)
        story.wait(0.0395)
        for held in range(2, 6):
            story.ack("b", first, rest=f"<sack {first + 1460}:{first + held * 1460}>")
            story.wait(0.0001)
        story.step("a", "A", "len 1460", seq=first)
        story.wait(0.005).ack("b")
        story.wait(0.035).ack("b", rest=f"<sack {first}:{first + 1460}>")
        story.wait(0.01)
    for _ in range(full):
        story.burst("a", 5).wait(0.0395).ack("b")
    return story.wait(0.1).close()


def test_fires_on_segments_that_had_arrived(tmp_path: Path) -> None:
    [finding] = judged(doubled(3).analyze(tmp_path), "TW303")
    assert blame(finding) == ("a_to_b", "client", "network", "certain")
    assert (finding.cost_ns, finding.severity) == (0, Severity.INFO)
    # 3 + 5 + 4 segments, then the retransmission of frame 4 and, after an ACK, its DSACK; each round has 12 frames.
    assert finding.evidence.frames == (13, 15, 25, 27, 37, 39)
    assert finding.evidence.values == {
        "spurious_by_dsack": 3,
        "retransmissions": 3,
        "data_segments": 118,
        "resent_bytes": 4380,
    }


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # Only two cases.
    analysis = doubled(2).analyze(tmp_path)
    assert not judged(analysis, "TW303")
    assert judged(analysis, "TW303", {"TW303.segments": 2})
    # Small share: 3 of 318 segments are 0.94 %.
    assert not judged(doubled(3, full=60).analyze(tmp_path), "TW303")
    # Real loss.
    for name in ("lab/loss-1-percent.pcap.gz", "wild/lossy-path.pcapng.gz"):
        assert not judged(tcpwin.analyze(ROOT / "captures" / name), "TW303")
    # Three segments of 4,380 bytes; the capture lacks more of the 40,000 acknowledged bytes than it contains.
    [finding] = judged(acknowledged_first(4380).analyze(tmp_path), "TW303")
    assert finding.evidence.frames == (11, 12, 13)
    analysis = acknowledged_first(40_000).analyze(tmp_path)
    assert analysis.connections[0].a_to_b.spurious_retransmissions == 3
    assert not judged(analysis, "TW303")


def acknowledged_first(missing: int) -> Story:
    """b acknowledges `missing` bytes that the capture lacks; then three segments of them arrive."""
    story = Story().handshake(options=OPTIONS, scaled=(64_240, 65_160)).wait(0.001)
    story.burst("a", 5)
    story.wait(0.04).ack("b")
    first = story.next["a"]
    story.wait(0.01).ack("b", first + missing)
    for number in range(3):
        story.wait(0.3).step("a", "A", "len 1460", seq=first + number * 1460)
    story.next["a"] = first + missing
    return story.wait(0.1).close()


def test_a_retransmitted_fin_without_data_does_not_count(tmp_path: Path) -> None:
    """There is no data segment to take a share of: the FIN, acknowledged each time, is sent four times."""
    story = Story().handshake(options=OPTIONS, scaled=(64_240, 65_160)).wait(0.001)
    first = story.next["a"]
    story.step("a", "FA")
    story.wait(0.04).ack("b")
    for _ in range(4):
        story.wait(0.3)
        story.step("a", "FA", seq=first)
        story.wait(0.04).ack("b")
    analysis = story.analyze(tmp_path)
    assert analysis.findings.failed == ()
    assert not judged(analysis, "TW303", {"TW303.segments": 1, "TW303.share": 0})
