"""Findings as text: complete lines, written by hand."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from cases import all_cases
from report.made_findings import NASTY, NASTY_SHOWN, NOTE, RULES, STALL, bundled, found

from tcpwin.limits import Evidence, Severity
from tcpwin.render.text.findings import render_findings
from tcpwin.render.text.rules import render_page, render_rules, threshold_text
from tcpwin.render.view.finding import value_words
from tcpwin.units import begin


def test_whole_report() -> None:
    """keep-alive.pcap: one connection of 127.0.0.1:42942 and 127.0.0.1:9002 (tests/captures)."""
    analysis = bundled("keep-alive.pcap")
    name = analysis.name
    assert list(render_findings(analysis, found(STALL, NOTE), checked=3)) == [
        f"{name}:#0 server→client TW901 made-stall (warning, time lost 6.1 s, certain): "
        "a waited 100% of the time, 3 times",
        "    ends       client 127.0.0.1:42942, server 127.0.0.1:9002",
        "    owner      the client's host",
        "    evidence   frames 4, 9",
        "    values     window 65.5 kB, rtt 85 ms, rate 6.17 Mbit/s, share 20.0 %, times 3",
        "    ruled out  Loss: nothing was sent again.",
        "    remedy     Set a larger buffer on a.",
        "               sysctl -w net.ipv4.tcp_rmem='4096 131072 8388608'",
        "               sysctl -w net.ipv4.tcp_window_scaling=1",
        "    beware     More memory.",
        "",
        f"{name} TW902 made-note (info, rate lost 93.5 Mbit/s, possible): the capture is small",
        "    owner      nobody",
        "",
        "2 findings (1 warning, 1 info); 3 rules checked on 1 connection.",
    ]


def test_limit_leaves_the_counts() -> None:
    analysis = bundled("keep-alive.pcap")
    lines = list(render_findings(analysis, found(STALL, NOTE, NOTE), checked=3, limit=1))
    assert [line.split(" ")[0] for line in lines if line.startswith(analysis.name)] == [f"{analysis.name}:#0"]
    assert lines[-2:] == [
        "3 findings (1 warning, 2 info); 3 rules checked on 1 connection.",
        "2 findings not shown: --limit N shows more, --select CODE those of one rule.",
    ]
    assert list(render_findings(analysis, found(), checked=3, limit=1)) == [
        "No findings; 3 rules checked on 1 connection."
    ]


def test_findings_beyond_those_kept_are_counted() -> None:
    kept = replace(found(STALL), counts={"TW901": 5000})
    lines = list(render_findings(bundled("keep-alive.pcap"), kept, checked=1))
    assert lines[-2:] == [
        "5,000 findings (1 warning among the 1 costliest); 1 rule checked on 1 connection.",
        "4,999 findings not shown: --limit N shows more, --select CODE those of one rule.",
    ]


def test_spans_are_printed_as_wireshark_prints_time() -> None:
    analysis = bundled("keep-alive.pcap")
    first_ns = analysis.capture.first_time_ns
    assert first_ns is not None
    spans = [
        (Evidence(start_ns=first_ns + 1_500_000_000, end_ns=first_ns + 2_000_001_000), "from 1.500000 to 2.000001"),
        (Evidence(start_ns=first_ns + 7_000), "at 0.000007"),
        (Evidence(start_ns=first_ns, end_ns=first_ns), "at 0.000000"),
    ]
    for evidence, text in spans:
        lines = list(render_findings(analysis, found(replace(STALL, evidence=evidence)), checked=1))
        assert lines[3] == f"    when       {text} s of the capture"


def test_nothing_acts_on_a_terminal() -> None:
    lines = list(render_findings(bundled("keep-alive.pcap"), found(NASTY), checked=1))
    assert lines[0].endswith(f"(error, time lost 6.1 s, certain): {NASTY_SHOWN}")
    assert lines[4:9] == [
        f"    values     who {NASTY_SHOWN}",
        f"    ruled out  {begin(NASTY_SHOWN)}",
        f"    remedy     {NASTY_SHOWN}",
        f"               {NASTY_SHOWN}",
        f"    beware     {NASTY_SHOWN}",
    ]
    assert all(line.isprintable() for line in lines)


@all_cases(
    ("name", "value", "text"),
    [
        ("window_bytes", 65_535, "window 65.5 kB"),
        ("grown_bytes", -65_535, "grown -65.5 kB"),
        ("bdp_bytes", Fraction(2_500_000, 2), "bdp 1.25 MB"),
        ("longest_stall_ns", 119_747_000, "longest stall 120 ms"),
        ("goodput_bps", 0.0, "goodput 0 bit/s"),
        ("share", 0.125, "share 12.5 %"),
        ("resent_share", 1.0, "resent share 100.0 %"),
        ("episodes", 1234, "episodes 1,234"),
        ("episodes", np.int64(1234), "episodes 1,234"),
        ("shift", 0, "shift 0"),
        ("halvings", 2.5, "halvings 2.5"),
        ("ratio", 12_345.0, "ratio 12,345"),
        ("ratio", 1e300, "ratio 1e+300"),
        ("ratio", float("nan"), "ratio unknown"),
        ("rtt_ns", float("inf"), "rtt unknown"),
        ("_ns", 5, " ns 5"),
        ("setting", "tcp_rmem", "setting tcp_rmem"),
    ],
)
def test_values(name: str, value: float | str, text: str) -> None:
    assert " ".join(value_words(name, value)) == text


def test_list_of_rules() -> None:
    assert list(render_rules(RULES)) == [
        "TW901  made-stall  warning  title of TW901",
        "TW902  made-note   info     title of TW902",
        "TW903  made-quiet  warning  title of TW903",
    ]


def test_page() -> None:
    made = replace(
        RULES[0], scope="direction", when=(("zero_window_ns", ">=", "{limit_ns}"), ("data_segments", ">", 3))
    )
    assert list(render_page(made)) == [
        "TW901 made-stall: title of TW901",
        "warning, checks each direction with zero_window_ns >= limit_ns and data_segments > 3",
        "",
        "What it finds",
        "  A made pattern.",
        "",
        "Why it matters",
        "  It does not.",
        "",
        "How it is judged",
        "  By `limit_ns`.",
        "",
        "When it is wrong",
        "  Never.",
        "",
        "What to do",
        "  Nothing.",
        "",
        "Thresholds",
        "  Set with `tcpwin check --threshold TW901.NAME=VALUE`.",
        "  limit_ns  200ms: A made reason.",
    ]


def test_page_names_the_rules_that_take_precedence() -> None:
    lines = list(render_page(replace(RULES[0], yields_to=("TW902", "TW903"))))
    assert lines[-6:] == [
        "Counted once",
        "  Time that one of these rules also claims is counted there only: TW902, TW903.",
        "",
        "Thresholds",
        "  Set with `tcpwin check --threshold TW901.NAME=VALUE`.",
        "  limit_ns  200ms: A made reason.",
    ]


@all_cases(
    ("default", "unit", "text"),
    [
        (200_000_000, "ns", "200ms"),
        (1_500_000_000, "ns", "1500ms"),
        (60_000_000_000, "ns", "60s"),
        (1_234, "ns", "1234ns"),
        (25_000, "ns", "25us"),
        (0, "ns", "0s"),
        (0.02, "share", "2%"),
        (0.07, "share", "7%"),
        (0.005, "share", "0.5%"),
        (1448, "bytes", "1448B"),
        (1_000_000_000, "bps", "1000000000bit"),
        (3, "count", "3"),
        (1.5, "times", "1.5"),
    ],
)
def test_defaults_are_said_exactly(default: float, unit: str, text: str) -> None:
    threshold = replace(RULES[0].thresholds["limit_ns"], default=default, unit=unit)
    assert threshold_text(threshold) == text


def test_severities_are_listed_from_the_worst() -> None:
    errors = [replace(STALL, severity=severity) for severity in (Severity.INFO, Severity.ERROR, Severity.ERROR)]
    *_, last = render_findings(bundled("keep-alive.pcap"), found(*errors), checked=30)
    assert last == "3 findings (2 errors, 1 info); 30 rules checked on 1 connection."
