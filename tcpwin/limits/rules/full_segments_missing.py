"""## What it finds

Captured away from the sender: small segments arrive, but not one full segment ever does, and the hole that the missing
ones leave is never filled. TW316 is about senders that find a smaller size.

## Why it matters

It is the receiver's view of a path that drops large packets (TW312): the handshake and short messages pass, and the
first long answer never comes. The receiver sees a silent peer, although the sender retransmits into nothing.

## How it is judged

The largest payload that arrived is smaller than a full segment by the MSS options of both SYNs. Data, or a bare ACK
with a later sequence number, arrived above a hole of at least one full segment, and for `wait_ns` or longer, until the
end of the capture, nothing filled the hole. If the hole is a whole number of full segments, the finding is likely,
otherwise possible.

## When it is wrong

A capture that began on another interface, or a filter by length, lacks large packets that did arrive. An outage that
began with these segments looks the same if it ended just before the last, short one.

## What to do

As for TW312: clamp the MSS to the path's MTU, or let ICMP errors through to the sender. A capture at the sender shows
which sizes it repeats.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.packets import ACK, RST, SYN, packets_of, unwrapped
from tcpwin.limits.evidence.sizes import TIMESTAMPS, clamp_remedy
from tcpwin.limits.finding import Evidence, Finding, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text, time_text


class Hole(NamedTuple):
    """Bytes that never arrived, below others that did: their number, when that was seen, and in which frame."""

    missing_bytes: int
    since_ns: int
    frame: int


def judge(case: Case) -> Iterator[Finding]:
    data = case.data
    options = [each.syn_mss for each in (data, case.back) if each.syn_mss]
    if data.view == "sender" or len(options) < 2 or not case.may_read:
        return
    full_bytes = min(options) - TIMESTAMPS
    hole = _hole(case) if data.max_payload_bytes < full_bytes else None
    if hole is None or hole.missing_bytes < full_bytes:
        return
    waited_ns = case.connection.end_ns - hole.since_ns
    if waited_ns < case.settings["wait_ns"]:
        return
    whole = next((size for size in (full_bytes, min(options)) if hole.missing_bytes % size == 0), 0)
    size = data.max_payload_bytes
    passing = f"segments of up to {size:,} bytes" if size else "packets without data"
    segments = f", {count_text(hole.missing_bytes // whole, 'full segment')}" if whole else ""
    yield case.finding(
        f"No full segment of {case.the_sender} ever arrived: {hole.missing_bytes:,} bytes{segments} are missing below "
        f"what did arrive, for {time_text(waited_ns)} to the end; {passing} pass, so the path seems to drop "
        "larger ones",
        owner="network",
        side=case.sender,
        confidence="likely" if whole else "possible",
        cost_ns=waited_ns,
        evidence=Evidence(
            frames=(hole.frame,),
            start_ns=hole.since_ns,
            end_ns=case.connection.end_ns,
            values={"missing_bytes": hole.missing_bytes, "largest_arrived_bytes": size},
            ruled_out="Not a silent sender: what it sent after the missing bytes arrived.",
        ),
        remedy=clamp_remedy(case, size),
    )


def _hole(case: Case) -> Hole | None:
    """Return the hole at the receiver's last acknowledgment, if data above it arrived."""
    packets = packets_of(case)
    if packets is None:
        return None
    own, peer = packets.sent_by(case.sender), packets.sent_by("b" if case.sender == "a" else "a")
    # A bare ACK from Linux carries SND.NXT, even if the data before it never arrived.
    own = own.of(~own.has(SYN) & ~own.has(RST))
    peer = peer.of(peer.has(ACK) & ~peer.has(RST))
    if not len(own) or not len(peer):
        return None
    base = int(own["seq"][0])
    starts, acked = unwrapped(own["seq"], base), int(unwrapped(peer["ack"], base).max())
    above = (starts > acked) | ((starts == acked) & (own["length"] > 0))
    if not above.any() or int(starts[above].min()) == acked:
        return None
    first = int(above.argmax())
    seen = first if own["length"][first] else max(first - 1, 0)
    return Hole(int(starts[above].min()) - acked, int(own["time_ns"][seen]), int(own["frame"][first]))


RULE = Rule(
    code="TW315",
    name="full-segments-missing",
    title="no full segment ever arrived",
    severity=Severity.ERROR,
    scope="direction",
    limits=("path_mtu",),
    judge=judge,
    page=__doc__,
    when=(("previous_segment_missing", ">=", 1),),
    thresholds={
        "wait_ns": Threshold(1e9, "ns", "A sender repeats a lost segment twice within a second (RFC 6298)."),
    },
)
