"""TW205 window-shrunk: an edge that moves back by a unit of the scale, and one that moves by rounding only."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.story import Story, blame, judged
from stories.window_stories import one, sample, scaled

START_NS = 1_600_000_000_000_000_000


def acked_with(*windows: int) -> Story:
    """b, which first offers 509 << 7 bytes, acknowledges a segment of 1,460 bytes with each of these windows."""
    story = Story(window={"a": 64_240, "b": 65_160}).handshake(options=scaled(7), scaled=(502, 509))
    story.data("a")
    story.wait(0.04).ack("b")
    for window in windows:
        story.data("a")
        story.wait(0.04).ack("b", window=window)
    return story.close()


def test_fires_on_an_edge_that_moves_back(tmp_path: Path) -> None:
    finding = one(acked_with(400, 380, 360).analyze(tmp_path), "TW205")
    assert blame(finding) == ("a_to_b", "server", "server_host", "likely")
    assert finding.cost_ns == 0
    # Handshake, a segment and its ACK; then frames 6 and 7, ... The others move the edge by 20 x 128 - 1,460 bytes.
    assert finding.evidence.frames == (7, 9, 11)
    assert str(finding.severity) == "info"
    assert finding.evidence.start_ns == START_NS + 120_000_000
    assert finding.evidence.end_ns == START_NS + 200_000_000
    assert finding.evidence.values == {"window_shrinks": 3, "to_zero": 0, "retransmissions": 0}


def test_does_not_fire_on_rounding(tmp_path: Path) -> None:
    # 1,460 bytes are 11.4 units: with 12 units less the edge moves back by 76 bytes, less than a unit.
    once = {"TW205.shrinks": 1}
    assert not judged(acked_with(509 - 12).analyze(tmp_path), "TW205", once)
    assert judged(acked_with(509 - 13).analyze(tmp_path), "TW205", once)


def test_threshold_can_be_set(tmp_path: Path) -> None:
    assert not judged(acked_with(400, 380).analyze(tmp_path), "TW205")
    assert judged(acked_with(400, 380).analyze(tmp_path), "TW205", {"TW205.shrinks": 2})


@pytest.mark.parametrize(
    ("windows", "host", "expected"),
    [
        (
            (400, 380, 360),
            "net.ipv4.tcp_shrink_window = 1\nnet.ipv4.tcp_sack = 1\nkernel.osrelease = 6.8.0\n",
            "certain",
        ),
        (
            (400, 380, 360),
            "net.ipv4.tcp_shrink_window = 0\nnet.ipv4.tcp_sack = 1\nkernel.osrelease = 6.8.0\n",
            "likely",
        ),
    ],
)
def test_the_kernels_rule_is_named(tmp_path: Path, windows: tuple[int, ...], host: str, expected: str) -> None:
    ss = sample("b", 0.1, "wscale:7,7 rto:240 rtt:40/1 mss:1460 cwnd:10")
    analysis = acked_with(*windows).analyze(tmp_path, snapshots={"ss_b.txt": ss, "sysctl_b.txt": host})
    finding = one(analysis, "TW205")
    assert finding.confidence == expected
    assert ("tcp_shrink_window is 1" in finding.text) == (expected == "certain")


@pytest.mark.parametrize(("release", "named"), [("6.8.0", True), ("6.5.0", False)])
def test_always_to_zero_is_memory_from_6_6_on(tmp_path: Path, release: str, named: bool) -> None:
    ss = sample("b", 0.1, "wscale:7,7 rto:240 rtt:40/1 mss:1460 cwnd:10")
    settings = f"net.ipv4.tcp_sack = 1\nkernel.osrelease = {release}\n"
    analysis = acked_with(0, 509, 0, 509, 0).analyze(tmp_path, snapshots={"ss_b.txt": ss, "sysctl_b.txt": settings})
    finding = one(analysis, "TW205")
    assert finding.evidence.values["to_zero"] == 3
    assert str(finding.severity) == "warning"
    assert ("out of memory" in finding.text) == named
