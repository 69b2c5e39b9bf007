"""TW706 autotuning-off: the setting off, on, without effect, and off where it does not matter."""

from __future__ import annotations

from pathlib import Path

from stories.hostsaid import A, B, ss, sysctl
from stories.parts import SYNS
from stories.story import Story, judged, says

import tcpwin

RMEM = "4096 131072 6291456"


def analyze(
    folder: Path, *, value: int = 0, buffer: int = 131_072, segments: int = 46, rmem: str = RMEM
) -> tcpwin.Analysis:
    """a sends segments to b, whose host provides its settings; 46 segments have 67,160 bytes."""
    story = Story().handshake(0.1, options=SYNS)
    for _ in range(segments // 23):
        story.burst("a", 23).wait(0.1)
        story.ack("b")
    skmem = f"r0,rb{buffer},t0,tb87040,f0,w0,o0,bl0,d0"
    said = {
        "ss_server.txt": ss(B, A, "rtt:100/50", skmem=skmem),
        "sysctl_server.txt": sysctl(tcp_moderate_rcvbuf=str(value), tcp_rmem=rmem, tcp_adv_win_scale="1"),
        "uname_server.txt": "6.1.0\n",
    }
    return story.close(0.1).analyze(folder, snapshots=said)


def test_fires_where_it_is_off(tmp_path: Path) -> None:
    [finding] = judged(analyze(tmp_path), "TW706")
    assert (finding.side, finding.owner, finding.confidence) == ("server", "server_host", "certain")
    assert (finding.connection, finding.cost_ns) == (None, 0)
    # Half of 131,072 bytes every 100 ms.
    assert finding.evidence.values == {
        "net.ipv4.tcp_moderate_rcvbuf": 0,
        "host": "server",
        "tcp_rmem_default_bytes": 131_072,
        "window_bytes": 65_536,
        "path_rtt_ns": 100_000_000,
        "ceiling_bps": 5_242_880.0,
        "largest_rcvbuf_bytes": 131_072,
        "most_received_bytes": 67_160,
    }
    assert says(finding, "the server (server)", "131 kB", "5.24 Mbit/s", "100 ms")


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # The setting is on.
    assert not judged(analyze(tmp_path, value=1), "TW706")
    # A buffer that grew.
    assert not judged(analyze(tmp_path, buffer=262_144), "TW706")
    # Little data.
    assert not judged(analyze(tmp_path, segments=23), "TW706")
    # A large buffer: half of 6 MiB is window, the maximum of autotuning.
    analysis = analyze(tmp_path, rmem="4096 6291456 6291456", buffer=6_291_456)
    assert not judged(analysis, "TW706")


def test_threshold_can_be_set(tmp_path: Path) -> None:
    analysis = analyze(tmp_path)
    assert not judged(analysis, "TW706", {"TW706.window_bytes": 65_536})
    assert judged(analysis, "TW706", {"TW706.window_bytes": 65_537})
    assert not judged(analysis, "TW706", {"TW706.rtt_ns": 100_000_001})
