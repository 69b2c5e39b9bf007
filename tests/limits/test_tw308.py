"""TW308 local-drops: holes at the sender filled by retransmissions, and the network's loss."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.story import Story, blame, judged

import tcpwin

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = ("<mss 1460,sackOK>", "<mss 1460,sackOK>")
LENGTH = 1460


def dropped(times: int, *, is_captured: bool = False, is_filled: bool = True, distance: float = 0.0) -> Story:
    """Captured at a: the first of five segments is never captured; SACKs lack it, and it is resent 40 ms later."""
    story = Story()
    story.step("a", "S", OPTIONS[0], seq=0)
    story.next.update(a=1, b=1)
    story.acked.update(a=1, b=1)
    story.wait(0.04).step("b", "SA", OPTIONS[1], seq=0, ack=1)
    story.wait(distance).step("a", "A")
    story.wait(0.001)
    for _ in range(times):
        story.burst("a", 2).wait(0.0398).ack("b")
        story.wait(0.001)
        first = story.next["a"]
        if is_captured:
            story.data("a")
        else:
            story.next["a"] += LENGTH
        story.wait(0.0001).burst("a", 4).wait(0.0395)
        if is_filled:
            for held in range(2, 6):
                story.ack("b", first, rest=f"<sack {first + LENGTH}:{first + held * LENGTH}>")
                story.wait(0.0001)
            story.step("a", "A", f"len {LENGTH}", seq=first)
            story.wait(0.04)
        story.ack("b")
        story.wait(0.01)
    return story


def test_fires_on_holes_that_are_filled(tmp_path: Path) -> None:
    analysis = dropped(2).analyze(tmp_path)
    [finding] = judged(analysis, "TW308")
    assert blame(finding) == ("a_to_b", "client", "client_host", "likely")
    # Frames 1 to 3 are the handshake; a round has two segments and their ACK, four segments, four ACKs, the
    # retransmission (3 + 3 + 4 + 4 + 1 = 15) and its ACK.
    assert finding.evidence.frames == (15, 28)
    # From each retransmission to its ACK, 40 ms later.
    assert finding.cost_ns == 80_000_000
    assert finding.evidence.values == {
        "without_original": 2,
        "retransmissions": 2,
        "previous_segment_missing": 2,
        "missed_bytes": 0,
    }


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # Only one case.
    analysis = dropped(1).analyze(tmp_path)
    assert not judged(analysis, "TW308")
    assert judged(analysis, "TW308", {"TW308.segments": 1})
    # The originals left.
    assert not judged(dropped(3, is_captured=True).analyze(tmp_path), "TW308")
    # The capture lost them: acknowledged without a retransmission, so b had received them.
    analysis = dropped(3, is_filled=False).analyze(tmp_path)
    assert analysis.connections[0].a_to_b.missed_bytes == 3 * LENGTH
    assert not judged(analysis, "TW308", {"TW308.segments": 0})
    # A lossy path.
    for name in ("lab/loss-1-percent.pcap.gz", "wild/lossy-path.pcapng.gz"):
        assert not judged(tcpwin.analyze(ROOT / "captures" / name), "TW308")


def test_does_not_fire_on_a_link_away(tmp_path: Path) -> None:
    """A millisecond from a: a switch or router in between may have dropped them."""
    analysis = dropped(2, distance=0.001).analyze(tmp_path)
    assert (analysis.connections[0].a_to_b.view, analysis.connections[0].a_to_b.sender_shift_ns) == (
        "sender",
        1_000_000,
    )
    assert not judged(analysis, "TW308")
    assert judged(analysis, "TW308", {"TW308.host_ns": 1e6})


@pytest.mark.parametrize(("flight", "found"), [(3000, [2]), (5000, [])])
def test_is_silent_where_originals_are_not_known(tmp_path: Path, flight: int, found: list[int]) -> None:
    """Two segments never left, ten were lost on the path; above 4,096 in flight, frames are not tracked singly."""
    story, options = Story(), "<mss 1460,sackOK,ws 10>"
    story.handshake(0.04, options=(options, options), scaled=(16_000, 16_000)).wait(0.001)
    first, missing, lost = story.next["a"], (20, 21), range(100, 110)
    for number in range(flight):
        if number in missing:
            story.next["a"] += LENGTH
        else:
            story.data("a")
        story.wait(0.000002)
    hole = first + 20 * LENGTH
    story.wait(0.04).ack("b", hole)
    for held in (3, 2, 1):
        story.wait(0.0001).ack("b", hole, rest=f"<sack {first + 110 * LENGTH}:{first + (flight - held) * LENGTH}>")
    for number in (*missing, *lost):
        story.wait(0.00001).step("a", "A", f"len {LENGTH}", seq=first + number * LENGTH)
    story.wait(0.04).ack("b")
    findings = judged(story.close().analyze(tmp_path), "TW308")
    assert [finding.evidence.values["without_original"] for finding in findings] == found
