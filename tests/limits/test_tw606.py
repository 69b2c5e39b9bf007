"""TW606 clock-runs-backwards: packets earlier than the previous one, and packets in order."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.parts import CAPTURES, SYNS, joined
from stories.story import Story, judged, says

import tcpwin


def exchange(start: float, port: int) -> Story:
    """Three packets of the handshake, ten segments, an ACK and three packets of the close: 17 in all."""
    story = Story(now=start).setting(f"port a {port}").handshake(options=SYNS)
    story.burst("a", 10).wait(0.04)
    story.ack("b")
    return story.close()


def test_fires_on_files_joined_in_the_wrong_order(tmp_path: Path) -> None:
    path = joined(tmp_path, [exchange(5.0, 41_000), exchange(0.0, 41_001)], sort=False)
    [finding] = judged(tcpwin.analyze(path), "TW606")
    assert (finding.connection, finding.owner, finding.confidence, finding.cost_ns) == (None, "nobody", "certain", 0)
    assert finding.evidence.values == {
        "time_backwards": 1,
        "capture_reordered": 0,
        "packets": 34,
        "share": 1 / 34,
        "weakens": "TW3",
    }
    assert says(finding, "1 packet of 34 (2.94 %) has an earlier time")


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # Segments in order.
    assert not judged(tcpwin.analyze(joined(tmp_path, [exchange(0.0, 41_000), exchange(5.0, 41_001)])), "TW606")
    # Reordering by the network.
    assert not judged(tcpwin.analyze(CAPTURES / "wild" / "lossy-path.pcapng.gz"), "TW606")


@pytest.mark.parametrize(("share", "found"), [(0.029, 1), (0.03, 0)])
def test_threshold_can_be_set(tmp_path: Path, share: float, found: int) -> None:
    path = joined(tmp_path, [exchange(5.0, 41_000), exchange(0.0, 41_001)], sort=False)
    assert len(judged(tcpwin.analyze(path), "TW606", {"TW606.share": share})) == found
