"""A scenario like a capture: its round trip, its bytes, and the settings of its hosts."""

from __future__ import annotations

from pathlib import Path

import pytest

import tcpwin
from tcpwin.lab import ScenarioError, scenario_like
from tcpwin.reference import reference

CAPTURES = Path(__file__).parents[2] / "captures"


def test_a_bundle_becomes_a_scenario() -> None:
    scenario = scenario_like(
        tcpwin.analyze(CAPTURES / "bundles" / "slow-reader.zip"), name="Slow reader!", rate_mbps=100
    )
    assert scenario.route.rtt_ms == pytest.approx(40, abs=0.5)
    assert scenario.route.rate_mbps == 100
    assert scenario.serve.bytes == 6_000_000
    assert scenario.sysctl["receiver"]["net.ipv4.tcp_rmem"] == "4096 131072 6291456"
    assert scenario.sysctl["receiver"]["net.ipv4.tcp_congestion_control"] == "cubic"
    assert scenario.name == "like-slow-reader"


def test_settings_of_a_file_are_of_both_hosts_and_an_assumed_rate_is_told(tmp_path: Path) -> None:
    settings = tmp_path / "sysctl.txt"
    settings.write_text("net.ipv4.tcp_rmem = 4096 87380 4194304\nnet.ipv4.tcp_congestion_control = htcp\n")
    scenario = scenario_like(tcpwin.analyze(CAPTURES / "lab" / "slow-reader.pcap.gz", snapshots=[settings]))
    for end in ("sender", "receiver"):
        assert scenario.sysctl[end] == {"net.ipv4.tcp_rmem": "4096 87380 4194304"}
    assert scenario.route.rate_mbps == 1000
    assert "# assumed" in scenario.text
    assert "# Not in the lab's kernel: tcp_congestion_control = htcp" in scenario.text


def test_a_path_carries_at_least_what_was_captured() -> None:
    """700,204 bytes over a loopback interface came to 2.9 Gbit/s: a path of 1 Gbit/s could never give as much."""
    scenario = scenario_like(tcpwin.analyze(CAPTURES / "wild" / "http-ipv6.pcap.zst"))
    assert scenario.route.rate_mbps == 10_000
    assert "# assumed" in scenario.text


def test_the_settings_of_a_references_run_take_the_receivers_place() -> None:
    analysis = tcpwin.analyze(CAPTURES / "bundles" / "slow-reader.zip")
    run = reference("lab-bulk-300ms").run("512m2-stock")
    scenario = scenario_like(analysis, connection=analysis.connections[0], settings_of=run)
    assert scenario.sysctl["receiver"]["net.ipv4.tcp_rmem"] == f"4096 131072 {512 << 20}"
    assert scenario.sysctl["receiver"]["net.ipv4.tcp_adv_win_scale"] == "-2"
    assert scenario.sysctl["sender"]["net.ipv4.tcp_wmem"].split()[2] == str(512 << 20)
    assert scenario.sysctl["sender"]["net.ipv4.tcp_rmem"] == "4096 131072 6291456"
    assert scenario.name == "like-capture-as-lab-bulk-300ms-512m2-stock"
    assert scenario.hosts.memory_mib == 4096
    with pytest.raises(ScenarioError, match="states no receive buffer"):
        scenario_like(analysis, settings_of=reference("passt-ramps").run("5ms"))


@pytest.mark.parametrize(
    ("name", "said"), [("cut-record-header.pcap", "has no data"), ("only-a-header.pcap", "has no TCP connection")]
)
def test_a_capture_without_a_transfer_is_refused(name: str, said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        scenario_like(tcpwin.analyze(CAPTURES / "broken" / name))


@pytest.mark.parametrize(
    "line",
    [
        "tcp_rmem = 4096 131072 abc",
        'tcp_rmem = 4096 131072 6291456"',
        "tcp_rmem =",
        "tcp_wmem = 4096",
        "tcp_rmem = 1 2 99999999999999999999999999",
        'tcp_sack = 1"',
        "tcp_adv_win_scale = one",
        'tcp_congestion_control = x"',
    ],
)
def test_a_setting_that_no_kernel_has_said_is_refused_by_name(line: str, tmp_path: Path) -> None:
    """Snapshots come from other people: what is in them must not become a scenario's text unseen."""
    settings = tmp_path / "sysctl.txt"
    settings.write_text(f"net.ipv4.{line}\n")
    analysis = tcpwin.analyze(CAPTURES / "lab" / "slow-reader.pcap.gz", snapshots=[settings])
    with pytest.raises(ScenarioError) as error:
        scenario_like(analysis)
    assert line.partition(" ")[0] in str(error.value)
    assert "\n" not in str(error.value)
