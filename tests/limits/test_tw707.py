"""TW707 tcp-memory-pressure: memory above tcp_mem, pressure counted by the kernel, and memory below."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.hostsaid import START, A, B, nstat, sockstat, ss, sysctl
from stories.parts import SYNS
from stories.story import Story, judged

import tcpwin
from tcpwin.limits import Severity

COUNTER = "TcpExtTCPMemoryPressures"


def analyze(folder: Path, *pages: int, pressures: tuple[int, int] = (0, 0)) -> tcpwin.Analysis:
    """A short transfer, and data of b's host: tcp_mem is 750, 1000 and 1500 pages."""
    story = Story().handshake(options=SYNS)
    story.burst("a", 5).wait(0.04)
    story.ack("b")
    said = {
        "ss_server.txt": ss(B, A, "rtt:40/20"),
        "sysctl_server.txt": sysctl(tcp_mem="750 1000 1500"),
        "sockstat_server.txt": sockstat(*pages),
        "nstat_server.txt": nstat(*({COUNTER: count, "TcpExtTCPTimeouts": 1} for count in pressures)),
    }
    return story.close().analyze(folder, snapshots=said)


def test_fires_above_the_second_value(tmp_path: Path) -> None:
    [finding] = judged(analyze(tmp_path, 900, 1001, 1200, 800), "TW707")
    assert (finding.side, finding.owner, finding.confidence) == ("server", "server_application", "certain")
    assert (finding.connection, finding.severity) == (None, Severity.WARNING)
    assert finding.evidence.start_ns == (START + 1) * 1_000_000_000
    assert finding.evidence.end_ns == (START + 2) * 1_000_000_000
    assert finding.evidence.values == {
        "host": "server",
        COUNTER: 0,
        "samples_above": 2,
        "tcp_memory_bytes": 1200 * 4096,
        "pressure_bytes": 1000 * 4096,
        "high_bytes": 1500 * 4096,
    }
    assert finding.remedy.settings == ("ss -tmn", "net.ipv4.tcp_mem = 1500 2000 3000")


def test_is_an_error_above_the_third_value(tmp_path: Path) -> None:
    [finding] = judged(analyze(tmp_path, 1501), "TW707")
    assert finding.severity == Severity.ERROR


def test_fires_on_the_kernels_count(tmp_path: Path) -> None:
    [finding] = judged(analyze(tmp_path, 900, pressures=(4, 6)), "TW707")
    assert finding.severity == Severity.WARNING
    assert finding.evidence.values == {"host": "server", COUNTER: 2, "samples_above": 0}


@pytest.mark.parametrize("pressures", [(0, 0), (4, 4)])
def test_does_not_fire_at_the_second_value(tmp_path: Path, pressures: tuple[int, int]) -> None:
    assert not judged(analyze(tmp_path, 900, 1000, pressures=pressures), "TW707")


def test_threshold_can_be_set(tmp_path: Path) -> None:
    assert not judged(analyze(tmp_path, 900, pressures=(4, 6)), "TW707", {"TW707.pressures": 3})
