"""TW408 delayed-acks: a window of one segment whose ACKs are late, on time, and with more in flight."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.story import Story, blame, judged

import tcpwin

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = ("<mss 1460>", "<mss 1460>")


def one_by_one(late: int, *, ack_after: float = 0.081, length: int = 1460, gap: float = 0.0001) -> Story:
    """Round trip 40 ms. A first segment answered at once, then this many with late ACKs, each releasing new data."""
    story = Story().handshake(options=OPTIONS, scaled=(64_240, 1460)).wait(0.001)
    story.data("a", length)
    story.wait(0.04).ack("b")
    for _ in range(late):
        story.wait(gap).data("a", length)
        story.wait(ack_after).ack("b")
    story.wait(gap).data("a", length)
    story.wait(0.04).ack("b")
    return story


def test_fires_where_one_segment_fits(tmp_path: Path) -> None:
    [finding] = judged(one_by_one(3).analyze(tmp_path), "TW408")
    assert blame(finding) == ("a_to_b", "client", "client_host", "likely")
    assert finding.cost_ns == 3 * 41_000_000
    # Frames 4 and 5 are the first segment and its ACK; then segment, late ACK, and the next segment.
    assert finding.evidence.frames == (6, 7, 8, 9, 10, 11, 12)
    assert finding.evidence.values == {
        "waits": 3,
        "waited_ns": 123_000_000,
        "delayed_acks": 3,
        "rtt_min_ns": 40_000_000,
    }


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # Only two cases.
    assert not judged(one_by_one(2).analyze(tmp_path), "TW408", {"TW408.cost_ns": 0})
    # The ACKs are on time.
    assert not judged(one_by_one(5, ack_after=0.07).analyze(tmp_path), "TW408", {"TW408.cost_ns": 0})
    # The application continues later.
    assert not judged(one_by_one(5, gap=0.003).analyze(tmp_path), "TW408", {"TW408.cost_ns": 0})


def test_leaves_nagle_to_its_own_rule(tmp_path: Path) -> None:
    analysis = one_by_one(3, length=100).analyze(tmp_path)
    assert not judged(analysis, "TW408")
    assert judged(analysis, "TW405")


@pytest.mark.parametrize("name", ["receive-buffer-64k", "loss-1-percent", "no-window-scaling"])
def test_does_not_fire_where_more_was_in_flight(name: str) -> None:
    """39, 33 and 4 delayed ACKs, none of which left nothing in flight with more data to send."""
    analysis = tcpwin.analyze(ROOT / "captures" / "lab" / f"{name}.pcap.gz")
    assert not judged(analysis, "TW408", {"TW408.waits": 3, "TW408.cost_ns": 0, "TW408.share": 0})
