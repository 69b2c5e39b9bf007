"""TW703 window-scaling-off: the setting off, on, and off while the SYNs offer scaling."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.hostsaid import A, B, ss, sysctl
from stories.parts import SYNS
from stories.story import Story, judged, says

import tcpwin

UNSCALED = ("<mss 1460,sackOK>", "<mss 1460,sackOK>")


def analyze(folder: Path, *, value: int = 0, options: tuple[str, str] = UNSCALED, rtt: float = 0.1) -> tcpwin.Analysis:
    """a sends 40 segments to b, whose host provides its settings."""
    story = Story().handshake(rtt, options=options, scaled=(64_240, 65_160))
    story.burst("a", 40).wait(rtt)
    story.ack("b")
    said = {"ss_server.txt": ss(B, A, "rtt:100/50"), "sysctl_server.txt": sysctl(tcp_window_scaling=str(value))}
    return story.close(rtt).analyze(folder, snapshots=said)


def test_fires_where_it_is_off(tmp_path: Path) -> None:
    [finding] = judged(analyze(tmp_path), "TW703")
    assert (finding.side, finding.owner, finding.confidence) == ("server", "server_host", "certain")
    assert (finding.connection, finding.cost_ns) == (None, 0)
    # 65,535 bytes every 100 ms.
    assert finding.evidence.values == {
        "net.ipv4.tcp_window_scaling": 0,
        "host": "server",
        "syns_without_scale": 1,
        "path_rtt_ns": 100_000_000,
        "ceiling_bps": 5_242_800.0,
    }
    assert says(finding, "the server (server)", "65,535 bytes", "5.24 Mbit/s", "100 ms")
    assert finding.remedy.settings == ("sysctl -w net.ipv4.tcp_window_scaling=1",)


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # The setting is on.
    assert not judged(analyze(tmp_path, value=1), "TW703")
    # The SYN offers scaling.
    assert not judged(analyze(tmp_path, options=SYNS), "TW703")


@pytest.mark.parametrize(("rtt", "found"), [(0.0004, 0), (0.0006, 1)])
def test_does_not_fire_on_a_short_path(tmp_path: Path, rtt: float, found: int) -> None:
    analysis = analyze(tmp_path, rtt=rtt)
    assert len(judged(analysis, "TW703")) == found
    assert judged(analysis, "TW703", {"TW703.rtt_ns": 0})
