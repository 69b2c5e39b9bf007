"""TW603 offload: a capture with segmentation offload, and one without."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.parts import CAPTURES, SYNS
from stories.story import Story, judged

import tcpwin


def test_fires_on_big_frames() -> None:
    [finding] = judged(tcpwin.analyze(CAPTURES / "lab" / "offload-big-frames.pcap.gz"), "TW603")
    assert (finding.connection, finding.owner, finding.confidence, finding.cost_ns) == (None, "nobody", "certain", 0)
    assert finding.evidence.values == {
        "super_segments": 666,
        "segments": 1340,
        "max_payload_bytes": 62_264,  # 43 × 1448
        "mss_bytes": 1448,
        "weakens": "TW3, TW4",
    }
    rows = tcpwin.analyze(CAPTURES / "lab" / "offload-big-frames.pcap.gz").segments()
    lengths = dict(zip(rows["frame"].tolist(), rows["length"].tolist(), strict=True))
    assert len(finding.evidence.frames) == 6
    assert all(lengths[frame] > 1448 for frame in finding.evidence.frames)


@pytest.mark.parametrize("name", ["lab/window-scaling.pcap.gz", "wild/iperf3-loopback.pcap.lz4"])
def test_does_not_fire_on_single_packets(name: str) -> None:
    assert not judged(tcpwin.analyze(CAPTURES / name), "TW603")


def long_segments(count: int) -> Story:
    """A handshake, 96 segments, the first of which contain two each, and an ACK."""
    story = Story().handshake(options=SYNS)
    for number in range(96):
        story.data("a", 2920 if number < count else 1460)
        story.wait(0.0001)
    story.wait(0.04).ack("b")
    return story


@pytest.mark.parametrize(("count", "found"), [(0, 0), (1, 1)])
def test_fires_from_one_in_a_hundred(tmp_path: Path, count: int, found: int) -> None:
    # 100 segments in all.
    findings = judged(long_segments(count).analyze(tmp_path), "TW603")
    assert [finding.evidence.frames for finding in findings] == [(4,)] * found


def test_does_not_fire_on_segments_that_are_a_little_longer(tmp_path: Path) -> None:
    # A middlebox lowered the MSS in the capture from 1500 to 1460.
    story = Story().handshake(options=SYNS)
    story.burst("a", 20, length=1500).wait(0.04)
    story.ack("b")
    analysis = story.analyze(tmp_path)
    assert analysis.capture.super_segments == 20
    assert not judged(analysis, "TW603")
    assert judged(analysis, "TW603", {"TW603.times": 1.0})


def test_threshold_can_be_set(tmp_path: Path) -> None:
    assert not judged(long_segments(1).analyze(tmp_path), "TW603", {"TW603.share": 0.011})


def test_explains_an_absent_mss(tmp_path: Path) -> None:
    """Neither SYN has the option: 536 bytes (RFC 9293 §3.7.1)."""
    story = Story().handshake(options=("", ""), scaled=(64_240, 65_160))
    story.burst("a", 4, length=1200).wait(0.04)
    story.ack("b")
    [finding] = judged(story.analyze(tmp_path), "TW603")
    assert finding.evidence.ruled_out == (
        "Jumbo frames: without the MSS option at most 536 bytes may be sent (RFC 9293 §3.7.1)."
    )
