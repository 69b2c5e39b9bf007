"""Real boxes between two real hosts: each is named, where a capture shows it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from faults import box
from live import HANG_S
from reference import KERNEL_LACKS, NO_RIGHT

import tcpwin
from tcpwin.limits import Verdict

Run = Callable[..., Path]


@pytest.fixture
def run(tmp_path: Path, tool: Callable[[str], str]) -> Run:
    """Return a function that has a client converse with a server through a box, and returns the folder of captures."""

    def through(kind: str, idle_s: float = 1.5) -> Path:
        for program in ("nft", "haproxy", "tcpdump", "ss"):
            tool(program)
        if shutil.which("unshare") is None:
            pytest.skip(f"{KERNEL_LACKS} namespaces to try")
        spaces = "-n" if os.geteuid() == 0 else "-rn"
        done = subprocess.run(
            ["unshare", spaces, sys.executable, box.__file__, str(tmp_path), kind],
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_S,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "BOX_IDLE_S": str(idle_s)},
        )
        if done.returncode and ("not permitted" in done.stderr or "Permission denied" in done.stderr):
            pytest.skip(f"{NO_RIGHT} make namespaces")
        if done.returncode and "not supported" in done.stderr:
            pytest.skip(f"{KERNEL_LACKS} nf_tables")
        assert done.returncode == 0, done.stderr
        return tmp_path

    return through


def worst(path: Path) -> tuple[Verdict, tcpwin.Analysis]:
    """Return the verdict on the first connection."""
    analysis = tcpwin.analyze(path)
    return analysis.connections[0].verdict, analysis


def test_a_nat_that_resets_one_side(run: Run) -> None:
    verdict, analysis = worst(run("nat") / "router.pcap")
    assert (verdict.limit, verdict.owner) == ("middlebox", "network")
    assert "NAT" in (verdict.fix or "")
    assert {each.code for each in analysis.findings} >= {"TW512"}


def test_a_clamped_mss(run: Run) -> None:
    folder = run("clamp")
    pairing = tcpwin.pair(folder / "client.pcap", folder / "server.pcap")
    changes = [each for way in pairing.connections[0].directions for each in way.changes]
    assert [(each.field, each.left_as, each.came_as) for each in changes] == 2 * [("mss", 1460, 1200)]


def test_a_path_that_refuses_large_packets_silently(run: Run) -> None:
    folder = run("icmp-blocked")
    for point in ("client", "router", "server"):
        verdict, _ = worst(folder / f"{point}.pcap")
        assert (verdict.limit, verdict.owner) == ("path_mtu", "network")
        assert "tcp_mtu_probing" in (verdict.fix or "")


def test_a_path_that_says_what_it_refuses(run: Run) -> None:
    _, analysis = worst(run("icmp-heard") / "server.pcap")
    [finding] = [each for each in analysis.findings if each.code == "TW312"]
    assert "1,280 bytes" in finding.text


def test_a_firewall_that_forgot_and_drops(run: Run) -> None:
    verdict, _ = worst(run("conntrack-drop") / "client.pcap")
    assert (verdict.limit, verdict.owner) == ("middlebox", "network")


def test_a_proxy_that_closes_idle_connections(run: Run) -> None:
    folder = run("haproxy", 2.5)
    for point in ("client", "router"):
        verdict, analysis = worst(folder / f"{point}.pcap")
        assert (verdict.limit, verdict.owner) == ("idle", "server_application")
        assert {each.code for each in analysis.findings} >= {"TW509"}


@pytest.mark.nightly
def test_a_firewall_that_forgot_after_half_a_minute_and_resets(run: Run) -> None:
    verdict, _ = worst(run("conntrack-reset", 46.0) / "client.pcap")
    assert (verdict.limit, verdict.owner) == ("middlebox", "network")
    assert "keep-alives" in (verdict.fix or "")
