"""TW309 lost-retransmission: a third copy of the same data, and losses repaired by one retransmission."""

from __future__ import annotations

from pathlib import Path

from stories.story import Story, blame, judged

import tcpwin

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = ("<mss 1460,sackOK>", "<mss 1460,sackOK>")
LENGTH = 1460


def lost_twice(times: int, rtt: float = 0.1) -> Story:
    """Five segments, the first lost; its retransmission is lost too: SACK of later data triggers a third copy."""
    story = Story().handshake(rtt, options=OPTIONS, scaled=(64_240, 65_160)).wait(0.001)
    for _ in range(times):
        first = story.next["a"]
        story.burst("a", 5).wait(rtt)
        for held in range(2, 6):
            story.ack("b", first, rest=f"<sack {first + LENGTH}:{first + held * LENGTH}>")
            story.wait(0.0001)
        story.step("a", "A", f"len {LENGTH}", seq=first)
        story.wait(0.0001).burst("a", 2).wait(rtt)
        for held in (6, 7):
            story.ack("b", first, rest=f"<sack {first + LENGTH}:{first + held * LENGTH}>")
            story.wait(0.0001)
        story.step("a", "A", f"len {LENGTH}", seq=first)
        story.wait(rtt).ack("b")
        story.wait(0.01)
    return story.close(rtt)


def test_fires_on_two(tmp_path: Path) -> None:
    [finding] = judged(lost_twice(2).analyze(tmp_path), "TW309")
    assert blame(finding) == ("a_to_b", None, "network", "certain")
    # Between the second and the third copy: 0.1 ms, two segments 0.1 ms apart, a round trip, two ACKs: 100.5 ms.
    assert finding.cost_ns == 2 * 100_500_000
    # A round: 5 segments, 4 ACKs, the second copy (13 and 29), 2 segments, 2 ACKs, the third copy, its ACK.
    assert finding.evidence.frames == (13, 18, 29, 34)
    assert finding.evidence.values == {"lost_again": 2, "waited_ns": 201_000_000, "retransmissions": 4}


def test_does_not_fire_where_dsack_takes_them_back(tmp_path: Path) -> None:
    """A DSACK reports each third copy (RFC 2883 §4): the second copies were late, and none was lost again."""
    story = lost_twice(3)
    for first in (1, 1 + 7 * LENGTH, 1 + 14 * LENGTH):
        story.step("b", "A", f"<sack {first}:{first + LENGTH}>")
    analysis = story.analyze(tmp_path)
    assert analysis.connections[0].a_to_b.lost_retransmissions == 0
    assert not judged(analysis, "TW309", {"TW309.cost_ns": 0})


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # Only one case.
    analysis = lost_twice(1).analyze(tmp_path)
    assert analysis.connections[0].a_to_b.lost_retransmissions == 1
    assert not judged(analysis, "TW309", {"TW309.cost_ns": 0})
    # A small cost.
    analysis = lost_twice(2, rtt=0.07).analyze(tmp_path)
    assert not judged(analysis, "TW309")
    assert judged(analysis, "TW309", {"TW309.cost_ns": 140e6})
    # Single losses.
    for name in ("lab/loss-1-percent.pcap.gz", "wild/lossy-path.pcapng.gz", "wild/iperf3-loopback.pcap.lz4"):
        assert not judged(tcpwin.analyze(ROOT / "captures" / name), "TW309")


def test_segments_that_wait_at_the_same_time_cost_it_once(tmp_path: Path) -> None:
    """Two adjacent segments are lost twice: 100.6 ms between second and third copy, the other pair 0.1 ms later."""
    story = Story().handshake(0.1, options=OPTIONS, scaled=(64_240, 65_160)).wait(0.001)
    first = story.next["a"]
    story.burst("a", 6).wait(0.1)
    for held in (3, 4, 5, 6):
        story.ack("b", first, rest=f"<sack {first + 2 * LENGTH}:{first + held * LENGTH}>")
        story.wait(0.0001)
    for lost in (0, 1):
        story.step("a", "A", f"len {LENGTH}", seq=first + lost * LENGTH)
        story.wait(0.0001)
    story.burst("a", 2).wait(0.1)
    for held in (7, 8):
        story.ack("b", first, rest=f"<sack {first + 2 * LENGTH}:{first + held * LENGTH}>")
        story.wait(0.0001)
    for lost in (0, 1):
        story.step("a", "A", f"len {LENGTH}", seq=first + lost * LENGTH)
        story.wait(0.0001)
    story.wait(0.1).ack("b")
    analysis = story.close(0.1).analyze(tmp_path)
    assert not judged(analysis, "TW309")
    [finding] = judged(analysis, "TW309", {"TW309.cost_ns": 100e6})
    assert finding.evidence.values["lost_again"] == 2
    assert finding.cost_ns == 100_700_000
