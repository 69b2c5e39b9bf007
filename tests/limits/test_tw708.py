"""TW708 listen-queue-overflow: a counter that grew, and one that did not."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.hostsaid import START, A, B, nstat, ss
from stories.parts import SYNS
from stories.story import Story, judged, says

import tcpwin

OVERFLOWS, DROPS = "TcpExtListenOverflows", "TcpExtListenDrops"


def analyze(folder: Path, *counts: tuple[int, int]) -> tcpwin.Analysis:
    """A short transfer, and the counters of b's host."""
    story = Story().handshake(options=SYNS)
    story.burst("a", 5).wait(0.04)
    story.ack("b")
    said = {
        "ss_server.txt": ss(B, A, "rtt:40/20"),
        "nstat_server.txt": nstat(*({OVERFLOWS: overflows, DROPS: drops} for overflows, drops in counts)),
        "sysctl_server.txt": "net.core.somaxconn = 128\nnet.ipv4.tcp_sack = 1\n",
    }
    return story.close().analyze(folder, snapshots=said)


def test_fires_on_growth(tmp_path: Path) -> None:
    [finding] = judged(analyze(tmp_path, (10, 12), (13, 17), (13, 17)), "TW708")
    assert (finding.side, finding.owner, finding.confidence) == ("server", "server_application", "certain")
    assert (finding.connection, finding.cost_ns) == (None, 0)
    assert finding.evidence.start_ns == START * 1_000_000_000
    assert finding.evidence.end_ns == (START + 2) * 1_000_000_000
    assert finding.evidence.values == {"host": "server", OVERFLOWS: 3, DROPS: 5, "net.core.somaxconn": 128}
    assert says(finding, "the server (server)", "3 connections")
    assert finding.remedy.settings == ("ss -ltn", "sysctl -w net.core.somaxconn=4096")


def test_leaves_out_what_was_counted_before_the_first_sample(tmp_path: Path) -> None:
    # Falling numbers are increments, the first of them since an unknown earlier run of nstat.
    [finding] = judged(analyze(tmp_path, (90, 91), (1, 1), (2, 2), (0, 1), (0, 0)), "TW708")
    assert (finding.evidence.values[OVERFLOWS], finding.evidence.values[DROPS]) == (3, 4)


@pytest.mark.parametrize("counts", [((10, 12), (10, 12)), ((10, 12),), ((10, 12), (10, 15))])
def test_does_not_fire_without_growth(tmp_path: Path, counts: tuple[tuple[int, int], ...]) -> None:
    assert not judged(analyze(tmp_path, *counts), "TW708")


def test_threshold_can_be_set(tmp_path: Path) -> None:
    assert not judged(analyze(tmp_path, (10, 12), (13, 17)), "TW708", {"TW708.overflows": 4})
