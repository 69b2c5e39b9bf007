"""TW206 silly-window: windows below a segment with small segments, and with full ones."""

from __future__ import annotations

from pathlib import Path

from stories.story import Story, blame, judged
from stories.window_stories import NO_SCALE, one, rounds

import tcpwin

CAPTURES = Path(__file__).parents[2] / "captures"


def pieces(size: int, count: int = 20) -> Story:
    """Round trip 40 ms. After a full segment b offers this many bytes each time, and a sends them."""
    story = Story(window={"a": 64_240, "b": 65_160}).handshake(options=NO_SCALE, scaled=(64_240, 65_160))
    story.data("a")
    story.wait(0.04).ack("b", window=size)
    return rounds(story, count, [size]).close()


def test_fires_on_pieces_of_500_bytes(tmp_path: Path) -> None:
    finding = one(pieces(500).analyze(tmp_path), "TW206")
    assert blame(finding) == ("a_to_b", "server", "server_host", "likely")
    assert finding.cost_ns == 800_000_000
    # Windows of 500 bytes are in frames 5, 7, ... 45: 21 of them, six of which are listed.
    assert finding.evidence.values == {
        "sub_mss_windows": 21,
        "mss_bytes": 1460,
        # (1,460 + 20 x 500) / 21
        "segment_mean_bytes": 545,
        "window_max_bytes": 65_160,
        "held_back_ns": 800_000_000,
    }
    assert finding.evidence.frames == (5, 13, 21, 29, 37, 45)


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # Larger pieces.
    assert not judged(pieces(800).analyze(tmp_path), "TW206")
    # Few windows.
    story = pieces(500, 8)
    assert not judged(story.analyze(tmp_path), "TW206")
    assert judged(story.analyze(tmp_path), "TW206", {"TW206.sub_mss": 9})
    # A window that fills up with data in flight. 65 accepted windows are smaller than a segment, but the segments are
    # full.
    analysis = tcpwin.analyze(CAPTURES / "lab" / "slow-reader.pcap.gz")
    assert analysis.connections[0].b_to_a.sub_mss_windows == 65
    assert not judged(analysis, "TW206")
