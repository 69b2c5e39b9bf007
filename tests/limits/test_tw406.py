"""TW406 small-initial-window: an initial flight of three segments, of ten, and of three that the application wrote."""

from __future__ import annotations

from pathlib import Path

from stories.story import Story, blame, judged

import tcpwin

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = ("<mss 1460,ws 7>", "<mss 1460,ws 7>")


def begun_with(segments: int, *, total: int = 45, last: int = 1460, wait: float = 0.0001) -> Story:
    """Round trip 100 ms; a flight of this many segments, then twice as many each, until all are sent."""
    story = Story().handshake(0.1, options=OPTIONS).wait(0.001)
    left, flight = total, segments
    while left:
        count = min(flight, left)
        story.burst("a", count - 1, spacing=0.0)
        story.data("a", last if left == total else 1460)
        story.wait(0.1).ack("b")
        story.wait(wait)
        left -= count
        flight *= 2
    return story.close(0.1)


def test_fires_on_three_segments(tmp_path: Path) -> None:
    [finding] = judged(begun_with(3).analyze(tmp_path), "TW406")
    assert blame(finding) == ("a_to_b", "client", "client_host", "likely")
    # 45 segments: 3 + 6 + 12 + 24 are four flights; 10 + 20 + 15 are three.
    assert finding.cost_ns == 100_000_000
    # Frames 1 to 3 are the handshake, 4 to 6 the first flight, 7 its ACK.
    assert finding.evidence.frames == (4, 6, 7, 8)
    assert finding.evidence.values == {
        "initial_flight_bytes": 4380,
        "initial_segments": 3,
        "message_segments": 45,
        "waited_ns": 100_000_000,
        "receive_window_initial_bytes": 65_160,
        "path_rtt_ns": 100_000_000,
    }


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # Ten segments.
    assert not judged(begun_with(10).analyze(tmp_path), "TW406", {"TW406.cost_ns": 0})
    # Ten would take as long: 9 + 18 = 27 segments are two flights; so are 10 + 17.
    assert not judged(begun_with(9, total=27).analyze(tmp_path), "TW406", {"TW406.cost_ns": 0})
    # The application wrote no more: a short segment ends the flight.
    assert not judged(begun_with(3, last=700).analyze(tmp_path), "TW406")
    # The sender continued later.
    assert not judged(begun_with(3, wait=0.005).analyze(tmp_path), "TW406")
    # Linux.
    for name in ("lab/idle-restart.pcap.gz", "lab/window-scaling.pcap.gz", "wild/lossy-path.pcapng.gz"):
        assert not judged(tcpwin.analyze(ROOT / "captures" / name), "TW406", {"TW406.cost_ns": 0})
