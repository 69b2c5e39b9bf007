"""## What it finds

The capture contains only one side of some connections.

## Why it matters

Without the ACKs, bytes in flight, round trips, windows and losses cannot be determined. Nearly all findings (TW1 to
TW5) are missing or have lower confidence for these connections.

## How it is judged

For at least `share` of all connections, one side sent more than a SYN and the other side never appears. Connections on
which one side keeps retransmitting without an answer (TW506) do not count.

## When it is wrong

A host that is switched off does not answer either, but its peer then sends only SYNs, which do not count here.
Hand-made or generated packets may have only one side on purpose.

## What to do

Capture where both directions pass: on one of the hosts, or with both directions of the port mirrored.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from tcpwin.analysis import Direction
from tcpwin.limits.case import Case
from tcpwin.limits.connection import Connection
from tcpwin.limits.evidence.capture import FIRST_LOOKED_AT, first_frames, share_of
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text


def judge(case: Case) -> Iterator[Finding]:
    silent = _silent(case)
    one_way, total = case.analysis.capture.connections_one_way - len(silent), len(case.analysis)
    share = share_of(one_way, total)
    if one_way <= 0 or share < case.settings["share"]:
        return
    yield case.finding(
        f"The capture holds only one direction of {count_text(one_way, 'connection')} of {total:,}: bytes in flight, "
        "round trips and loss are unknown there",
        owner="nobody",
        confidence="certain",
        evidence=Evidence(
            frames=first_frames(case, (id for id in _one_way(case) if id not in silent)),
            values={
                "connections_one_way": one_way,
                "connections": total,
                "share": share,
                "weakens": "TW1, TW2, TW3, TW4, TW5",
            },
            ruled_out="Not a host that does not answer: its peer would send only SYNs.",
        ),
        remedy=Remedy("Capture where both directions pass: on a host, or with both directions of a port mirrored."),
    )


def _silent(case: Case) -> set[int]:
    """Return connections on which one side is silent because it is gone: the other keeps retransmitting to it."""
    backs = ((id, _back(case.analysis.connections[id], direction)) for id, direction in case.asked[0])
    return {id for id, back in backs if back.segments <= back.rst}


def _back(connection: Connection, direction: str | None) -> Direction:
    return connection.b_to_a if direction == "a_to_b" else connection.a_to_b


def _one_way(case: Case) -> Iterator[int]:
    silent = case.analysis.select("direction", (("segments", "==", 0),))
    for id, _ in islice(silent, FIRST_LOOKED_AT):
        connection = case.analysis.connections[id]
        both = (connection.a_to_b, connection.b_to_a)
        if connection.close != "unanswered" and any(
            each.segments > each.syn_seen + each.syn_retransmissions for each in both
        ):
            yield id


RULE = Rule(
    code="TW604",
    name="one-way-capture",
    title="only one side of the connections",
    severity=Severity.WARNING,
    scope="capture",
    asks=(("direction", (("stall_at_end", "==", "peer_silent"),)),),
    counts=("connections_one_way",),
    judge=judge,
    page=__doc__,
    thresholds={
        "share": Threshold(
            0.05,
            "share",
            "One connection in twenty: the start and end of any capture cut off the other side of a few.",
        ),
    },
)
