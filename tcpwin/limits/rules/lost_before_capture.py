"""## What it finds

Captured away from the sender: for a time nothing of the sender arrived, although it sent. Then the path recovered, or
the sender sent smaller segments.

## Why it matters

It is the receiver's view of an outage (TW313), or of a path that drops large packets (TW312). The receiver sees a
silence, which looks like an application with nothing to say, and the sender's retransmissions are lost before the
capture point.

## How it is judged

The sender was silent for at least a second, and meanwhile its IP ID counted three packets or more that never
arrived, although it otherwise counts the connection's packets one by one. Or, for at least a second, the sender only
repeated data that the receiver had acknowledged: the acknowledgments were lost. The cost is the time without progress.

If packets were lost in the silence (by IP IDs or by the hole that they left), and all segments afterwards are at most
of one size that is smaller than the MSS options of both SYNs, and that did not arrive before, the sender probed for the
path's MTU (RFC 4821), and no larger packet passes.

## When it is wrong

A sender whose IP IDs count the packets of all its connections skips some for others; those that start from a TTL of 128
or 255 are not judged for this reason.

## What to do

As for TW313: look at what happened on the path at that time; for the path's MTU, as for TW312. A capture at the sender
shows how often it tried, and which sizes.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.outages import span_text
from tcpwin.limits.evidence.sizes import clamp_remedy
from tcpwin.limits.evidence.unseen import Smaller, Unseen, find_smaller, find_unseen
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity, of_many
from tcpwin.limits.rule import Rule
from tcpwin.units import count_text, time_text


def judge(case: Case) -> Iterator[Finding]:
    if (smaller := find_smaller(case)) is not None:
        yield _recovered(case, smaller)
        return
    if not (outages := find_unseen(case)):
        return
    longest = max(outages, key=lambda each: each.duration_ns)
    when = span_text(case, longest.start_ns, longest.end_ns)
    yield case.finding(
        _text(case, longest),
        owner="network",
        side=None,
        confidence="likely",
        limits=("path_outage",),
        cost_ns=sum(each.duration_ns for each in outages),
        evidence=Evidence(
            frames=longest.frames,
            start_ns=longest.start_ns,
            end_ns=longest.end_ns,
            values={"outages": len(outages), "longest_ns": longest.duration_ns, "lost": longest.lost},
            ruled_out=f"Not {case.the_sender}'s application: {case.the_sender} sent all the time.",
            frames_of=of_many("longest", 1, len(outages)),
            span_of=of_many("longest", 1, len(outages)),
        ),
        remedy=Remedy(
            f"Look at what happened on the path {when}: failover, routing change, roaming, a flapping "
            f"link. Capture at {case.the_sender} to see how often it tried.",
        ),
    )


def _recovered(case: Case, smaller: Smaller) -> Finding:
    sent = f"by its IP IDs it lost {count_text(smaller.lost, 'packet')} meanwhile" if smaller.lost else "data were lost"
    return case.finding(
        f"No full segment of {case.the_sender} ever arrived: it was silent for {time_text(smaller.duration_ns)}, "
        f"{sent}, and then sent {smaller.size:,} bytes at most, where the SYNs allow {smaller.full_bytes:,}: the path "
        "drops larger packets",
        owner="network",
        side=case.sender,
        confidence="likely",
        cost_ns=smaller.duration_ns,
        evidence=Evidence(
            frames=smaller.frames,
            start_ns=smaller.start_ns,
            end_ns=smaller.end_ns,
            values={"largest_arrived_bytes": smaller.size, "full_bytes": smaller.full_bytes, "lost": smaller.lost},
            ruled_out="Not an outage: only smaller segments arrived afterwards.",
        ),
        limits=("path_mtu",),
        remedy=clamp_remedy(case, smaller.size),
    )


def _text(case: Case, longest: Unseen) -> str:
    when = span_text(case, longest.start_ns, longest.end_ns)
    what = f"The path was down for {time_text(longest.duration_ns)}"
    if longest.of_receiver:
        return (
            f"{what} from {case.the_receiver} to {case.the_sender}: {when}, {case.the_sender} repeated "
            f"what {case.the_receiver} had acknowledged, and {count_text(longest.lost, 'packet')} of "
            f"{case.the_receiver} had no effect"
        )
    return (
        f"{what}, at least from {case.the_sender}: nothing of it arrived {when}, although by its "
        f"IP IDs it sent {count_text(longest.lost, 'packet')} meanwhile"
    )


RULE = Rule(
    code="TW316",
    name="lost-before-capture",
    title="packets were lost before the capture point for a time",
    severity=Severity.WARNING,
    scope="direction",
    limits=("path_outage", "path_mtu"),
    judge=judge,
    page=__doc__,
    when=(("connection.duration_ns", ">=", 1e9), ("data_segments", ">=", 3), ("rto_retransmissions", "<", 2)),
    yields_to=("TW315",),
)
