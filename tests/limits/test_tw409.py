"""TW409 congestion-window-limited: four doubling flights, a steady transfer, and a pause."""

from __future__ import annotations

from pathlib import Path

from stories.story import Story, judged

import tcpwin
from tcpwin.limits import Severity

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = ("<mss 1460,ws 9>", "<mss 1460,ws 9>")


def flights(*sizes: int, pause: float = 0.0001) -> Story:
    """Round trip 100 ms; a flight of each size, sent with the ACK of the previous one."""
    story = Story().handshake(0.1, options=OPTIONS, scaled=(502, 509)).wait(0.001)
    for size in sizes:
        story.burst("a", size, spacing=0.0).wait(0.1)
        story.ack("b")
        story.wait(pause)
    return story.close(0.1)


def test_fires_on_doubling_flights(tmp_path: Path) -> None:
    analysis = flights(10, 20, 40, 80).analyze(tmp_path)
    data = analysis.connections[0].a_to_b
    [finding] = judged(analysis, "TW409")
    assert (finding.direction, finding.side, finding.owner, finding.confidence) == ("a_to_b", None, "nobody", "likely")
    assert (finding.cost_ns, finding.severity) == (0, Severity.INFO)
    assert finding.evidence.values == {
        "slow_start_ns": data.slow_start_ns,
        "transfer_ns": 3 * 100_100_000,
        "path_rtt_ns": 100_000_000,
        "initial_flight_bytes": 14_600,
        "flight_max_bytes": 80 * 1460,
        "receive_window_max_bytes": 509 << 9,
    }
    assert 200_000_000 <= data.slow_start_ns <= 300_300_000


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # A steady transfer.
    assert not judged(flights(10, 20, 40, 40, 40, 40, 40, 40).analyze(tmp_path), "TW409")
    # Only one doubling.
    assert not judged(flights(10, 20).analyze(tmp_path), "TW409")
    # The lab's bulk transfers: the one at 1 Gbit/s spends 680 of 942 ms in slow start, and then fills its window.
    for name in ("window-scaling", "cooked-any", "offload-big-frames", "no-window-scaling"):
        assert not judged(tcpwin.analyze(ROOT / "captures" / "lab" / f"{name}.pcap.gz"), "TW409")
