"""## What it finds

The capture began after these connections did, so it lacks their SYNs.

## Why it matters

The window scale is negotiated in the SYNs. Without them a window field of 502 may mean 502 bytes or 8 million, so
findings on windows (TW1, TW2) are missing or have lower confidence, unless a snapshot of the socket shows the scale.
The handshake's round trip is missing too, and so is the information which side opened the connection.

## How it is judged

Neither the SYN nor the SYN/ACK was captured, for at least `share` of all connections.

## When it is wrong

This describes the capture. A capture filter that excludes SYNs has the same effect.

## What to do

Start the capture before the connections, or run `ss -tin` on a host: its `wscale:` shows both shifts.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.capture import FIRST_LOOKED_AT, first_frames, share_of
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text


def judge(case: Case) -> Iterator[Finding]:
    without, total = case.analysis.capture.connections_without_syn, len(case.analysis)
    share = share_of(without, total)
    if not without or share < case.settings["share"]:
        return
    given = _without_syn(case, "given")
    clause = f"; snapshots show the scale of {len(given):,}" if given else ""
    yield case.finding(
        f"{count_text(without, 'connection')} of {total:,} began before the capture{clause}. Without the SYNs the "
        "window "
        "scale is unknown",
        owner="nobody",
        confidence="certain",
        evidence=Evidence(
            frames=first_frames(case, _without_syn(case, "unknown") or given),
            values={
                "connections_without_syn": without,
                "scale_given": len(given),
                "connections": total,
                "share": share,
                "weakens": "TW1, TW2",
            },
        ),
        remedy=Remedy(
            "Start the capture before the connections, or take a snapshot of the sockets (ss) on one host.",
            settings=("ss -tinm",),
        ),
    )


def _without_syn(case: Case, state: str) -> list[int]:
    """Return the first connections that lack both SYNs and have a window whose scale is in that state."""
    found = case.analysis.select("direction", (("window_scale_state", "==", state), ("syn_seen", "==", False)))
    first = dict.fromkeys(id for id, _ in islice(found, FIRST_LOOKED_AT))
    connections = case.analysis.connections
    return [id for id in first if not (connections[id].a_to_b.syn_seen or connections[id].b_to_a.syn_seen)]


RULE = Rule(
    code="TW607",
    name="connections-without-handshake",
    title="connections that began before the capture",
    severity=Severity.INFO,
    scope="capture",
    counts=("connections_without_syn",),
    judge=judge,
    page=__doc__,
    thresholds={
        "share": Threshold(0.1, "share", "A capture of a busy host always begins in the middle of a few connections."),
    },
)
