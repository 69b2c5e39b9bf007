"""TW306 persistent-reordering: observed, inferred at the sender, and loss without reordering."""

from __future__ import annotations

from pathlib import Path

import pytest
from reference import LAB_RUNS
from stories.story import Story, blame, judged

import tcpwin
from tcpwin.limits import Severity

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = ("<mss 1460,ts 1000 0>", "<mss 1460,ts 500 1000>")
LENGTH = 1448


def swapped(times: int, *, apart: int = 1) -> Story:
    """Captured at b: the first segment of each group, by its IP identification, arrives after `apart` others."""
    story = Story()
    story.step("a", "S", OPTIONS[0], seq=0)
    story.next["a"], story.acked["b"] = 1, 1
    story.wait(0.0001).step("b", "SA", OPTIONS[1], seq=0, ack=1)
    story.next["b"], story.acked["a"] = 1, 1
    story.wait(0.04).step("a", "A", "<ts 1040 500>")
    story.wait(0.001)
    identification = 2000
    for number in range(times):
        stamp = 1050 + number * 10
        first = story.next["a"]
        for place in [*range(1, apart + 1), 0]:
            at = first + place * LENGTH
            story.step("a", "A", f"len {LENGTH} ipid {identification + place} <ts {stamp} 500>", seq=at)
            if place:
                story.step("b", "A", f"<ts {stamp - 500} {stamp}>", ack=first)
            story.wait(0.0005)
        identification += apart + 1
        story.next["a"] = first + (apart + 1) * LENGTH
        story.ack("b", rest=f"<ts {stamp - 500} {stamp}>")
        story.wait(0.005)
    return story


def test_fires_where_it_is_seen(tmp_path: Path) -> None:
    [finding] = judged(swapped(40).analyze(tmp_path), "TW306")
    assert blame(finding) == ("a_to_b", None, "network", "certain")
    assert (finding.cost_ns, finding.severity) == (0, Severity.INFO)
    # Frame 4 overtook frame 6; a group has four frames.
    assert finding.evidence.frames == (4, 6, 8, 10, 12, 14, 16, 18, 20, 22)
    assert finding.evidence.values == {
        "out_of_order": 40,
        "data_segments": 80,
        "reordering_max_bytes": 1448,
        "reordering_max_ns": 500_000,
        "threshold_bytes": 4344,
        "needless_retransmissions": 0,
    }


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # Few cases.
    analysis = swapped(29).analyze(tmp_path)
    assert analysis.connections[0].a_to_b.out_of_order == 29
    assert not judged(analysis, "TW306")
    assert judged(analysis, "TW306", {"TW306.segments": 29})
    # Loss.
    for name in ("lab/loss-1-percent.pcap.gz", "wild/lossy-path.pcapng.gz", "wild/lossy-path-receiver.pcap.gz"):
        assert not judged(tcpwin.analyze(ROOT / "captures" / name), "TW306")


@pytest.mark.parametrize("end", ["snd", "rcv"])
def test_a_lab_run_that_reorders_and_loses_nothing(end: str) -> None:
    analysis = tcpwin.analyze(LAB_RUNS / "reorder_only_cubic" / f"{end}.pcap.gz")
    [finding] = judged(analysis, "TW306")
    assert (finding.direction, finding.owner, finding.severity) == ("b_to_a", "network", Severity.INFO)
    if end == "snd":
        assert finding.confidence == "likely"
        assert finding.evidence.values == {"duplicate_acks": 2628, "data_segments": 5525, "retransmissions": 0}
    else:
        assert finding.confidence == "certain"
        assert finding.evidence.values["out_of_order"] == 2976


def test_does_not_fire_on_the_duplicate_acks_of_one_loss_beside_the_receiver(tmp_path: Path) -> None:
    """One segment is missing until the capture ends; each of the next hundred triggers a duplicate ACK."""
    story = Story().handshake(near="b")
    story.data("a")
    story.ack("b")
    lost = story.next["a"]
    story.next["a"] += 1460
    for _ in range(100):
        story.wait(0.0001).data("a")
        story.step("b", "A", f"<sack {lost + 1460}:{story.next['a']}>", ack=lost)
    analysis = story.analyze(tmp_path)
    data = analysis.connections[0].a_to_b
    assert (data.view, data.duplicate_acks, data.retransmissions) == ("receiver", 100, 0)
    assert not judged(analysis, "TW306")
