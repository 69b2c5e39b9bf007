"""Summaries of captures against results derived by hand: limits, their number and order.

Sizes, counts and times are those of the TOML next to each capture.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from analysis.bundled import READABLE
from report.made_findings import STALL, bundled, found
from scapy.layers.inet import IP, TCP
from scapy.utils import PcapWriter

import tcpwin
from tcpwin.limits import summarize


def test_summary_of_one_connection() -> None:
    analysis = bundled("zero-window-stall.pcap.gz")
    summary = summarize(analysis)
    assert summary.problems == {"receiver_application": (0,)}
    assert summary.verdict == analysis.connections[0].verdict
    for told in ("20 MB in 6.74 s", "certain", "slow reader on the client", "4.53 s", "Fix: "):
        assert told in summary.text
    assert summary.worst[0].code == "TW201"


def test_a_healthy_capture_has_no_problem() -> None:
    analysis = bundled("keep-alive.pcap")
    summary = summarize(analysis, found())
    assert (summary.problems, summary.worst) == ({}, ())
    assert "Nothing to fix in TCP: limited by" in summary.text
    assert "Fix" not in summary.text


def test_summary_names_the_costliest_findings() -> None:
    analysis = bundled("keep-alive.pcap")
    summary = summarize(analysis, found(STALL, replace(STALL, cost_ns=5), replace(STALL, cost_ns=4), STALL))
    assert [each.cost_ns for each in summary.worst] == [STALL.cost_ns, 5, 4]


def test_summary_of_many_connections() -> None:
    """90,504 bytes in the columns."""
    analysis = bundled("many-short.pcap.gz")
    total = sum(int(analysis.connections.column(f"{name}.unique_bytes").sum()) for name in ("a_to_b", "b_to_a"))
    assert f"{total / 1e3:.1f}" == "90.5"
    text = summarize(analysis).text
    refused = "127.0.0.1:8084 refused 5 connections"
    for told in ("65 connections", "90.5 kB in 448 ms", "No connection lost time. ", f"Also found: {refused}"):
        assert told in text
    assert "No problem found" not in text
    assert "No problem found. " in summarize(analysis, found()).text


def test_summary_counts_connections_by_the_limit_that_cost_most() -> None:
    paths = [path for path in READABLE if path.name in ("slow-reader.pcap.gz", "loss-1-percent.pcap.gz")]
    analysis = tcpwin.analyze([*paths, next(path for path in READABLE if path.name == "idle-restart.pcap.gz")])
    summary = summarize(analysis)
    counts = {limit: len(ids) for limit, ids in summary.problems.items()}
    assert counts == {"receiver_application": 1, "path_loss": 1, "idle_restart": 1}
    assert "3 connections with a problem: " in summary.text
    worst = analysis.connections[analysis.problems[0]]
    assert summary.verdict == worst.verdict
    assert worst.verdict.lost_ns == max(each.verdict.lost_ns for each in analysis.connections)


def test_every_connection_with_a_problem_is_counted(tmp_path: Path) -> None:
    """Each of 1,200 SYNs is sent again after 3 s; nobody answers."""
    path = tmp_path / "unanswered.pcap"
    with PcapWriter(str(path), linktype=101) as out:
        for delay_s in (0, 3):
            for number in range(1200):
                syn = IP(src="192.0.2.1", dst="192.0.2.2") / TCP(sport=2000 + number, dport=80, flags="S")
                syn.time = delay_s + number / 1000
                out.write(syn)
    summary = summarize(tcpwin.analyze(path))
    assert {limit: len(ids) for limit, ids in summary.problems.items()} == {"handshake": 1200}
    assert "1,200 connections with a problem: handshake. " in summary.text


def test_summary_is_honest_about_the_capture() -> None:
    assert "lacks the beginning of 1 connection" in summarize(bundled("mid-connection.pcap.gz")).text
    assert "damaged" in summarize(bundled("cut.pcap.gz")).text
    empty = summarize(bundled("only-a-header.pcap"))
    assert (empty.verdict, empty.problems) == (None, {})
    assert "No TCP connection" in empty.text


def test_summary_of_the_analysis_asks_the_rules() -> None:
    summary = bundled("slow-reader.pcap.gz").summary
    assert [each.code for each in summary.worst] == ["TW202", "TW201"]
