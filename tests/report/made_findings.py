"""Handmade findings and rules for output formats: plain ones, and one with all special characters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from analysis.bundled import READABLE

import tcpwin
from tcpwin.limits import Case, Evidence, Finding, Findings, Remedy, Rule, Severity, Threshold

PAGE = """## What it finds

A made pattern.

## Why it matters

It does not.

## How it is judged

By `limit_ns`.

## When it is wrong

Never.

## What to do

Nothing.
"""


def nothing(case: Case) -> Iterator[Finding]:  # noqa: ARG001
    yield from ()


def rule(code: str, name: str, severity: Severity = Severity.WARNING) -> Rule:
    """Return a rule of the capture with one threshold."""
    return Rule(
        code=code,
        name=name,
        title=f"title of {code}",
        severity=severity,
        scope="capture",
        judge=nothing,
        page=PAGE,
        thresholds={"limit_ns": Threshold(200_000_000, "ns", "A made reason.")},
    )


RULES = [rule("TW901", "made-stall"), rule("TW902", "made-note", Severity.INFO), rule("TW903", "made-quiet")]

STALL = Finding(
    code="TW901",
    name="made-stall",
    severity=Severity.WARNING,
    text="a waited 100% of the time, 3 times",
    connection=0,
    direction="b_to_a",
    owner="client_host",
    side="client",
    cost_ns=6_100_000_000,
    lost_bps=None,
    confidence="certain",
    evidence=Evidence(
        frames=(4, 9),
        values={"window_bytes": 65_535, "rtt_ns": 85_000_000, "rate_bps": 6_170_000.0, "share": 0.2, "times": 3},
        ruled_out="Loss: nothing was sent again.",
    ),
    remedy=Remedy(
        "Set a larger buffer on a.",
        settings=("sysctl -w net.ipv4.tcp_rmem='4096 131072 8388608'", "sysctl -w net.ipv4.tcp_window_scaling=1"),
        side_effects="More memory.",
    ),
)
NOTE = Finding(
    code="TW902",
    name="made-note",
    severity=Severity.INFO,
    text="the capture is small",
    connection=None,
    direction=None,
    owner="nobody",
    side=None,
    cost_ns=0,
    lost_bps=93_500_000.0,
    confidence="possible",
    evidence=Evidence(),
)
# A name from a snapshot may contain anything: ends of commands, XML and lines, terminal colours, half a surrogate pair.
NASTY_TEXT = 'a,b:c %41\r\n::error::x <tag attr="\'">&amp; ]]> \x1b[31m\x00\x08\ufffe\ud800 ü'
NASTY_SHOWN = 'a,b:c %41\\r\\n::error::x <tag attr="\'">&amp; ]]> \\x1b[31m\\x00\\x08\\ufffe\\ud800 ü'
NASTY = replace(
    STALL,
    severity=Severity.ERROR,
    text=NASTY_TEXT,
    evidence=Evidence(frames=(1,), values={"who": NASTY_TEXT}, ruled_out=NASTY_TEXT),
    remedy=Remedy(NASTY_TEXT, settings=(NASTY_TEXT,), side_effects=NASTY_TEXT),
)


def bundled(name: str) -> tcpwin.Analysis:
    """Return the analysis of a bundled capture."""
    return tcpwin.analyze(next(path for path in READABLE if path.name == name))


def found(*findings: Finding) -> Findings:
    """Return findings in this order, like `check`."""
    return Findings(findings, dict(Counter(each.code for each in findings)))
