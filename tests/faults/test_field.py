"""Reports from the field, read in place: limit, owner and exit status of each, and agreement of all surfaces.

Each file's right answer is in its folder's README; the mechanisms have crafted siblings in the other tests here.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from reference import ABSENT, REFERENCE_CAPTURES

import tcpwin
from tcpwin.cli.program import cli
from tcpwin.limits import Severity

ROOT = Path(__file__).parents[2]
FIELD = REFERENCE_CAPTURES / "field"
ROWS = {
    "slowfile-pmtu-blackhole-server": ("path_mtu", "network", 1),
    "pmtud-icmp-frag-needed": ("path_mtu", "network", 1),
    "size-dependent-loss-gro": ("path_mtu", "network", 1),
    "lb-idle-reset": ("middlebox", "network", 1),
    "forged-rst": ("middlebox", "network", 1),
    "nat-any-capture-router-rst": ("middlebox", "network", 1),
    "peer-silent-but-alive-elsewhere": ("middlebox", "network", 1),
    "nfs-ack-storm": ("middlebox", "network", 1),
    "wscale-ignored-server": ("middlebox", "server_host", 1),
    "window-scaling-ws3": ("middlebox", "server_host", 1),
    "lb-5s-per-retransmission": ("retransmission_timer", "server_host", 1),
    "ipv6-receiver-ignores-retransmissions": ("receiver_memory", "client_host", 1),
    "midpath-after-bottleneck": ("path_rate", "nobody", 0),
    "len-eq-caplen-receive-buffer-64k": ("receiver_window", "client_host", 1),
    "rb64k-receiver-ws5": ("middlebox", "network", 1),
    "keepalive-race": ("idle", "server_application", 1),
}
SAYS = {
    "slowfile-pmtu-blackhole-server": ("MSS", "tcp_mtu_probing"),
    "pmtud-icmp-frag-needed": ("1,350",),
    "size-dependent-loss-gro": ("GRO",),
    "lb-idle-reset": ("4 min 5 s", "keep-alives"),
    "forged-rst": ("TTL 243",),
    "nat-any-capture-router-rst": ("NAT",),
    "peer-silent-but-alive-elsewhere": ("connection 2",),
    "nfs-ack-storm": ("out of step",),
    "wscale-ignored-server": ("64,256",),
    "lb-5s-per-retransmission": ("5 s",),
    "zero-window-probes-ignored": ("closed its receive window",),
    "keepalive-race": ("crossed the FIN", "5 s"),
}
CAPTURES = [
    path
    for folder in (FIELD, ROOT / "captures" / "lab", ROOT / "captures" / "wild")
    for path in (sorted(folder.glob("*.pcap*")) if folder.is_dir() else [])
]


def analyzed(name: str) -> tcpwin.Analysis:
    path = FIELD / f"{name}.pcap.gz"
    if not path.is_file():
        pytest.skip(f"{ABSENT}: {path.name}")
    return tcpwin.analyze(path)


def test_a_small_window_that_opens_at_last_is_not_a_slow_readers() -> None:
    """The client's window stays at 17,520 bytes and acknowledges at once; its last two ACKs open it to 90,520."""
    verdict = analyzed("http-think-time-blamed-on-server").connections[0].verdict
    assert (verdict.limit, verdict.also) == ("requester_application", "receiver_window")


def test_bytes_between_acknowledgments_a_gigabyte_apart_are_counted() -> None:
    connection = analyzed("ack-jumps-1900MB").connections[0]
    assert connection.b_to_a.acked_bytes == 5_700_004_000


def worst(analysis: tcpwin.Analysis) -> tcpwin.limits.Verdict:
    """The verdict that the capture's summary names."""
    ids = list(analysis.problems) or [0]
    return analysis.connections[ids[0]].verdict


@pytest.mark.parametrize("name", ROWS)
def test_the_answer_of_the_packets(name: str) -> None:
    limit, owner, status = ROWS[name]
    analysis = analyzed(name)
    verdict = worst(analysis)
    assert (verdict.limit, verdict.owner) == (limit, owner)
    found = analysis.findings.worst or 0
    assert int(found >= Severity.WARNING) == status
    assert verdict.fix or not status


@pytest.mark.parametrize("name", SAYS)
def test_what_the_page_says(name: str) -> None:
    analysis = analyzed(name)
    verdict = worst(analysis)
    text = " ".join([verdict.text, verdict.reason, verdict.fix or "", *(each.text for each in analysis.findings)])
    assert not [words for words in SAYS[name] if words not in text], text


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_verdict_findings_and_exit_status_agree(path: Path) -> None:
    analysis = tcpwin.analyze(path)
    if not len(analysis) or len(analysis) > 300:
        pytest.skip("no connection, or too many to compare one by one")
    for connection in analysis:
        verdict = analysis.connections[connection.id].verdict
        found = analysis.findings.of(connection.id)
        warned = [each for each in found if each.severity >= Severity.WARNING]
        assert not verdict.is_problem or warned, f"{verdict.text}: no finding"
        if any(each.severity == Severity.ERROR for each in found):
            assert verdict.is_problem, verdict.text
        if any(each.remedy is not None for each in warned):
            assert "Nothing to fix" not in verdict.text, (verdict.text, [each.code for each in warned])
        assert sum(each.cost_ns for each in found) <= 2 * connection.duration_ns
        for way in ("a_to_b", "b_to_a"):
            own = [each.cost_ns for each in found if each.direction == way]
            assert sum(own) <= connection.duration_ns, f"{way}: findings cost more than the connection lasted"
    status = CliRunner().invoke(cli, ["check", str(path)], standalone_mode=False).return_value
    assert bool(status) == bool((analysis.findings.worst or 0) >= Severity.WARNING)
    assert bool(analysis.problems) <= bool(status), "a problem without a finding"
