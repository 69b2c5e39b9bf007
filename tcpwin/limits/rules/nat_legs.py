"""## What it finds

A connection that was captured on both sides of a NAT or router, and that a RST ended on one side only.

## Why it matters

A capture of all interfaces of a router (`-i any`) shows each connection twice, under different addresses. If the router
itself resets one side, the other side never learns of it: its host waits and retransmits without an answer, and the
peer is blamed.

## How it is judged

Two connections to the same server have the same initial sequence numbers on both sides, which happens by chance once in
2^64, and began within a second. A RST was captured on one of them and not on the other.

## When it is wrong

A capture that lost the RST's copy looks the same; so does one that ends before the copy.

## What to do

Look at the router: a connection tracking table that is full or was flushed, a rule with "reject with tcp-reset", or an
address that changed. On Linux, `conntrack -E` shows it, and packets that conntrack calls invalid should be dropped:
otherwise its own TCP stack answers them with a RST.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.legs import HalfReset, half_resets
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule
from tcpwin.units import time_text


def judge(case: Case) -> Iterator[Finding]:
    for each in half_resets(case) if case.asked[0] else ():
        for id in (each.waiting, each.reset):
            yield _finding(case, each, id)


def _finding(case: Case, half: HalfReset, id: int) -> Finding:
    judged = replace(case, subject=case.analysis.connections[id], direction="a_to_b")
    waited_ns = max(judged.connection.end_ns - half.time_ns, 0) if id == half.waiting else 0
    waited = f", and connection {id} still waited {time_text(waited_ns)}" if waited_ns else ""
    return judged.finding(
        f"Connections {half.reset} and {half.waiting} are one connection on both sides of a NAT or router (same "
        f"initial sequence numbers). The RST in frame {half.frame} is on one side only: the router sent it{waited}",
        owner="network",
        side=None,
        confidence="certain",
        cost_ns=waited_ns,
        evidence=Evidence(
            frames=(half.frame,) if id == half.reset else (),
            start_ns=half.time_ns,
            end_ns=half.time_ns + waited_ns,
            values={"reset": half.reset, "waiting": half.waiting, "reset_by": half.by},
            ruled_out="Not the host in whose name the RST was sent: its own side of the router has none.",
        ),
        remedy=Remedy(
            "Look at the router's NAT and firewall: a full or flushed connection table, a rejecting rule, an address "
            "that changed. On Linux, drop packets that conntrack calls invalid, or its own TCP answers them with RSTs.",
            settings=("iptables -A FORWARD -m conntrack --ctstate INVALID -j DROP",),
            side_effects="Packets of connections that conntrack has not seen from the start are dropped.",
        ),
    )


RULE = Rule(
    code="TW512",
    name="nat-legs",
    title="a router reset one side of a connection that it translates",
    severity=Severity.ERROR,
    scope="capture",
    asks=(("connection", (("close", "==", "reset"),)),),
    limits=("middlebox",),
    judge=judge,
    page=__doc__,
)
