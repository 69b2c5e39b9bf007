"""TW705 slow-start-after-idle-on: idle restarts with the setting on, off, and with BBR."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.hostsaid import ss, sysctl
from stories.parts import CAPTURES
from stories.story import blame, judged

import tcpwin
from tcpwin.limits import Severity

SENDER, RECEIVER = "10.9.1.1:5201", "10.9.2.2:47512"


def analyze(folder: Path, *, value: int = 1, control: str = "cubic") -> tcpwin.Analysis:
    """The lab's messages with pauses, and the settings of the sender's host."""
    text = ss(SENDER, RECEIVER, "wscale:7,7 rtt:60/30", times=(1_795_226_193.5,)).replace("cubic", control)
    (folder / "ss_sender.txt").write_text(text, encoding="utf8")
    (folder / "sysctl_sender.txt").write_text(sysctl(tcp_slow_start_after_idle=str(value)), encoding="utf8")
    snapshots = [folder / "ss_sender.txt", folder / "sysctl_sender.txt"]
    return tcpwin.analyze(CAPTURES / "lab" / "idle-restart.pcap.gz", snapshots=snapshots)


def test_fires_where_it_is_on(tmp_path: Path) -> None:
    [finding] = judged(analyze(tmp_path), "TW705")
    assert blame(finding) == ("b_to_a", "server", "server_host", "certain")
    assert (finding.severity, finding.cost_ns) == (Severity.INFO, 0)
    assert finding.evidence.frames == (59, 100, 141, 182, 223, 264)
    assert finding.evidence.values == {
        "net.ipv4.tcp_slow_start_after_idle": 1,
        "idle_restarts": 19,
        "idle_restart_cost_ns": 3_420_000_000,
    }


@pytest.mark.parametrize(("value", "control"), [(0, "cubic"), (1, "bbr")])
def test_does_not_fire_where_it_cannot_act(tmp_path: Path, value: int, control: str) -> None:
    assert not judged(analyze(tmp_path, value=value, control=control), "TW705")


def test_does_not_fire_without_settings() -> None:
    assert not judged(tcpwin.analyze(CAPTURES / "lab" / "idle-restart.pcap.gz"), "TW705")


def test_threshold_can_be_set(tmp_path: Path) -> None:
    assert judged(analyze(tmp_path), "TW705", {"TW705.restarts": 19})
    assert not judged(analyze(tmp_path), "TW705", {"TW705.restarts": 20})
