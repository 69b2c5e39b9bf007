"""A scenario like a capture: its round trip, its bytes, and the settings of its hosts."""

from __future__ import annotations

from pathlib import Path

import pytest

import tcpwin
from tcpwin.lab import ScenarioError, scenario_like

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


@pytest.mark.parametrize(
    ("name", "said"), [("cut-record-header.pcap", "has no data"), ("only-a-header.pcap", "has no TCP connection")]
)
def test_a_capture_without_a_transfer_is_refused(name: str, said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        scenario_like(tcpwin.analyze(CAPTURES / "broken" / name))
