"""TW601 capture-drops: acknowledged data that the capture lacks, drops of the interface, and neither."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.parts import CAPTURES, SYNS, with_drops
from stories.story import Story, judged, says

import tcpwin


def transfer(missing: int = 0) -> Story:
    """a sends 20 segments, of which the capture lacks some after the tenth; b acknowledges all."""
    story = Story().handshake(options=SYNS)
    story.burst("a", 10)
    story.next["a"] += missing * 1460
    story.burst("a", 10 - missing).wait(0.04)
    story.ack("b")
    return story.close()


def test_fires_on_acknowledged_data_missing_from_the_capture(tmp_path: Path) -> None:
    [finding] = judged(transfer(missing=1).analyze(tmp_path), "TW601")
    assert (finding.owner, finding.side, finding.confidence) == ("nobody", None, "certain")
    assert (finding.connection, finding.cost_ns) == (None, 0)
    # SYN, SYN/ACK, ACK, 19 segments, then the ACK.
    assert finding.evidence.frames == (23,)
    assert finding.evidence.values == {
        "interface_drops": 0,
        "missed_bytes": 1460,
        "missed_share": 1 / 20,
        "weakens": "TW2, TW3, TW4",
    }
    assert says(finding, "1.46 kB", "5.00 % of the payload")


@pytest.mark.parametrize(("share", "found"), [(0.05, 1), (0.051, 0)])
def test_threshold_can_be_set(tmp_path: Path, share: float, found: int) -> None:
    assert len(judged(transfer(missing=1).analyze(tmp_path), "TW601", {"TW601.share": share})) == found


@pytest.mark.parametrize(("drops", "found"), [(0, 0), (1, 1), (7, 1)])
def test_counts_the_drops_of_the_interface(tmp_path: Path, drops: int, found: int) -> None:
    findings = judged(tcpwin.analyze(with_drops(tmp_path, transfer(), drops)), "TW601")
    assert len(findings) == found
    for finding in findings:
        assert finding.evidence.values["interface_drops"] == drops
        assert finding.evidence.frames == ()


def test_does_not_fire_otherwise() -> None:
    # Loss that was repaired.
    assert not judged(tcpwin.analyze(CAPTURES / "lab" / "loss-1-percent.pcap.gz"), "TW601")
    # A capture that began late.
    assert not judged(tcpwin.analyze(CAPTURES / "lab" / "mid-connection.pcap.gz"), "TW601")
