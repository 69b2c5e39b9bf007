"""TW407 small-segments: a hundred pieces, ninety-nine, and pieces cut by a small window."""

from __future__ import annotations

from pathlib import Path

from stories.story import Story, blame, judged

import tcpwin
from tcpwin.limits import Severity

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = ("<mss 1460>", "<mss 1460>")


def pieces(count: int, *, full: int = 0, window: int | None = None) -> Story:
    """Send pieces of 100 bytes, all before the ACK, then full segments, the last of which does not count."""
    story = Story().handshake(options=OPTIONS, scaled=(64_240, 65_160)).wait(0.001)
    story.burst("a", count, length=100)
    story.burst("a", full)
    story.data("a", 1000, flags="PA")
    story.wait(0.04).ack("b", window=window)
    if window is not None:
        story.wait(0.01).ack("b", window=65_160)
    return story.wait(0.1).close()


def test_fires_on_a_hundred_pieces(tmp_path: Path) -> None:
    [finding] = judged(pieces(100).analyze(tmp_path), "TW407")
    assert blame(finding) == ("a_to_b", "client", "client_application", "certain")
    assert (finding.cost_ns, finding.severity) == (0, Severity.INFO)
    assert finding.evidence.frames == (4, 5, 6, 7, 8, 9)
    # 11,000 bytes in 101 segments; eight of 1,460 would do.
    assert finding.evidence.values == {
        "tinygrams": 100,
        "data_segments": 101,
        "mean_payload_bytes": 109,
        "mss_bytes": 1460,
        "header_bytes": 40 * 93,
    }


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # Only ninety-nine.
    assert not judged(pieces(99).analyze(tmp_path), "TW407")
    # Most are full: 100 of 201 segments are small, but the mean payload is above half of the MSS.
    assert not judged(pieces(100, full=100).analyze(tmp_path), "TW407")
    # The window cut them.
    assert not judged(pieces(100, window=700).analyze(tmp_path), "TW407")
    # Bulk transfers.
    for name in ("lab/no-window-scaling.pcap.gz", "lab/slow-reader.pcap.gz", "wild/iperf3-loopback.pcap.lz4"):
        assert not judged(tcpwin.analyze(ROOT / "captures" / name), "TW407")
