"""Remedies that fit the host: Windows gets commands of Windows, and no timer below the path's delay is suggested."""

from __future__ import annotations

from pathlib import Path

import pytest
from hangs.stories import transfer
from stories.boxes import outage
from stories.story import judged
from stories.window_stories import sample

from tcpwin.limits.finding import Remedy
from tcpwin.limits.systems import fitted

NETSH = """TCP Global Parameters
----------------------------------------------
Receive-Side Scaling State          : enabled
Receive Window Auto-Tuning Level    : disabled
Add-On Congestion Control Provider  : default
ECN Capability                      : disabled
RFC 1323 Timestamps                 : disabled
"""


def remedy_on(folder: Path, **files: str) -> Remedy:
    """Return a remedy for the server, with the records given."""
    named = {f"{name}.txt": text for name, text in files.items()}
    analysis = transfer().analyze(folder, snapshots=named)
    lines = ('sysctl -w net.ipv4.tcp_rmem="4096 131072 33554432"', "sysctl -w net.ipv4.tcp_sack=1", "restart it")
    return fitted(
        Remedy("Let the buffer grow.", settings=lines), analysis.hosts, analysis.connections[0].hosts.get("b")
    )


def test_windows_gets_commands_of_windows(tmp_path: Path) -> None:
    told = remedy_on(tmp_path, netsh_server=NETSH)
    assert told.settings == ("netsh interface tcp set global autotuninglevel=normal", "restart it")
    assert told.text == "Let the buffer grow."


def test_linux_keeps_its_own(tmp_path: Path) -> None:
    socket = sample("b", 0.1, "wscale:7,7 rto:240 rtt:40/1 mss:1460 cwnd:10")
    for files in ({}, {"ss_server": socket}, {"ss_server": socket, "netsh_other": NETSH}):
        assert len(remedy_on(tmp_path, **files).settings) == 3, files


@pytest.mark.parametrize("sender", ["a", "b"])
def test_no_timer_below_the_paths_delay(tmp_path: Path, sender: str) -> None:
    """The round trip is 40 ms."""
    [finding] = judged(outage(near=sender, sender=sender).analyze(tmp_path), "TW301")
    assert finding.remedy is not None
    assert "rto_min" not in finding.remedy.text
    assert finding.remedy.settings == ()
