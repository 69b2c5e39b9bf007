"""## What it finds

The path keeps delivering segments out of order, without losing them.

## Why it matters

Each late segment triggers duplicate ACKs, and three of them look like loss (RFC 5681 §3.2): a sender without RACK
reduces its window and retransmits what was only late. Receivers have more to queue and merge, and offload (GRO) stops
working.

## How it is judged

Where late segments are visible (mid-path or near the receiver), `out_of_order` is at least `segments` and at least
`share` of the data segments. Near the sender they are not visible; there the rule looks for the same number of
duplicate ACKs without any retransmission: what seemed missing arrived by itself. A `reordering_max_bytes` above three
segments exceeds the duplicate ACK threshold.

## When it is wrong

A capture that writes packets in the wrong order (several queues, mirror ports) looks like a reordering path;
`capture_reordered` counts the cases that the capture's own clock reveals. ACKs duplicated by the network look like
duplicate ACKs.

## What to do

Find what spreads the packets of one connection over several paths: per-packet load balancing, round-robin bonding,
`netem` jitter, or a network card that moves flows between receive queues. Linux copes well: keep
`net.ipv4.tcp_recovery=1` and timestamps on.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.events import events_of
from tcpwin.limits.evidence.loss import needless, pairs, resent
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import bytes_text, count_text, share_text, time_text

DUPLICATE_ACK_THRESHOLD = 3
"""RFC 5681 §3.2; Linux raises its own, net.ipv4.tcp_reordering, as it learns."""


def judge(case: Case) -> Iterator[Finding]:
    data = case.data
    least = max(case.settings["segments"], case.settings["share"] * data.data_segments)
    if data.out_of_order >= least:
        yield _seen(case)
    elif data.view == "sender" and not data.retransmissions and data.duplicate_acks >= least:
        yield _inferred(case)


def _seen(case: Case) -> Finding:
    data = case.data
    events = resent(case, "out_of_order")
    beyond = data.reordering_max_bytes > DUPLICATE_ACK_THRESHOLD * data.mss_bytes
    harmed = needless(case)
    effect = f"; {count_text(harmed, 'needless retransmission')}" if harmed else ""
    return case.finding(
        f"{share_text(data.out_of_order / data.data_segments)} of {case.the_sender}'s segments ({data.out_of_order:,}) "
        f"came out of order, by up to {bytes_text(data.reordering_max_bytes)} and "
        f"{time_text(data.reordering_max_ns)}{effect}",
        owner="network",
        confidence="certain" if events and all(event.confidence == "certain" for event in events) else "likely",
        severity=Severity.WARNING if harmed and beyond else Severity.INFO,
        evidence=Evidence(
            frames=pairs(events),
            start_ns=events[0].time_ns if events else None,
            end_ns=events[-1].time_ns if events else None,
            values={
                "out_of_order": data.out_of_order,
                "data_segments": data.data_segments,
                "reordering_max_bytes": data.reordering_max_bytes,
                "reordering_max_ns": data.reordering_max_ns,
                "threshold_bytes": DUPLICATE_ACK_THRESHOLD * data.mss_bytes,
                "needless_retransmissions": harmed,
            },
            ruled_out="Not loss: the late segments are the originals, by timestamp, IP identification or time.",
        ),
        remedy=_remedy(case),
    )


def _inferred(case: Case) -> Finding:
    data = case.data
    events = events_of(case, "duplicate_ack", side=case.receiver)
    return case.finding(
        f"The path may reorder {case.the_sender}'s segments: {case.the_receiver} sent {data.duplicate_acks:,} "
        f"duplicate ACKs for {data.data_segments:,} segments, and nothing was retransmitted",
        owner="network",
        confidence="likely",
        severity=Severity.INFO,
        evidence=Evidence(
            frames=tuple(event.frame for event in events[:6]),
            start_ns=events[0].time_ns if events else None,
            end_ns=events[-1].time_ns if events else None,
            values={"duplicate_acks": data.duplicate_acks, "data_segments": data.data_segments, "retransmissions": 0},
            ruled_out="Not loss: what the duplicate ACKs missed arrived without retransmission.",
        ),
        remedy=_remedy(case),
    )


def _remedy(case: Case) -> Remedy:
    return Remedy(
        "Send all packets of a connection over one path: no per-packet load balancing, no round-robin bonding. Keep "
        f"RACK and timestamps on at {case.the_sender}.",
        settings=("sysctl -w net.ipv4.tcp_recovery=1", "sysctl -w net.ipv4.tcp_timestamps=1"),
        side_effects="Each connection is then limited to one link's rate. Both settings are Linux's defaults.",
    )


RULE = Rule(
    code="TW306",
    name="persistent-reordering",
    title="the path reorders segments",
    severity=Severity.INFO,
    scope="direction",
    limits=("path_loss",),
    judge=judge,
    page=__doc__,
    when=(("duplicate_acks", ">=", "{segments}"),),
    thresholds={
        "segments": Threshold(30, "count", "A single route change reorders one flight at most."),
        "share": Threshold(0.01, "share", "Studies of the Internet find reordering well below 1 % on most paths."),
    },
)
