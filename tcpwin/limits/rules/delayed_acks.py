"""## What it finds

The sender had more to send, but only one segment fitted its window or buffer, so it repeatedly waited for the
receiver's delayed ACK.

## Why it matters

A receiver acknowledges every second full segment at once, but a single segment only after 40 ms (Linux) to 200 ms (RFC
9293 §3.8.6.3, RFC 5681 §4.2). When a window or send buffer allows only one segment in flight, the transfer stalls for
that time in every round. Small devices with a buffer of one segment are known for this.

## How it is judged

The rule counts delayed ACKs (`delayed_acks`) that left nothing in flight and were followed by new data within 2 ms of
reaching the sender. One of the two segments must be full, which rules out Nagle's algorithm (TW405). The cost is how
much later these ACKs came than the fastest one. There are at least `waits` of them, and the cost is at least `cost_ns`
and at least `share` of the time with data to send. Large captures, whose segments are not read a second time,
are not checked.

## When it is wrong

An application that happens to write just as the ACK arrives looks the same, but this rarely happens several times.

## What to do

Find what keeps the data in flight so small (receive window, send buffer, or congestion window after timeouts) and raise
it. On the receiver, a route with `quickack 1`, or TCP_QUICKACK, removes the delay.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.lone_segments import waits_of
from tcpwin.limits.evidence.loss import share_of
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity, of_many
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text, share_text, time_text

SHOWN = 4
ROOM = 2
"""Segments of a window that leaves the limit to the sender."""


def judge(case: Case) -> Iterator[Finding]:
    if not case.may_read:
        return
    waits = waits_of(case, is_delayed=True, is_full=True)
    least_ns = case.data.rtt_min_ns or 0
    cost_ns = sum(max(rtt_ns - least_ns, 0) for rtt_ns in waits.rtts_ns)
    share = share_of(case, cost_ns)
    if (
        len(waits.rtts_ns) < case.settings["waits"]
        or cost_ns < case.settings["cost_ns"]
        or share < case.settings["share"]
    ):
        return
    yield case.finding(
        f"{case.the_sender} waited {time_text(cost_ns)} ({share_text(share)} of the time with data to send) for "
        f"{case.the_receiver}'s delayed ACKs: a segment was alone in flight {count_text(len(waits.rtts_ns), 'time')}",
        owner="host",
        side=case.sender,
        confidence="likely",
        cost_ns=cost_ns,
        evidence=Evidence(
            frames=waits.frames(SHOWN),
            start_ns=waits.start_ns,
            end_ns=waits.end_ns,
            values={
                "waits": len(waits.rtts_ns),
                "waited_ns": cost_ns,
                "delayed_acks": case.data.delayed_acks,
                "rtt_min_ns": least_ns,
            },
            ruled_out=(
                "Not the application: its data left with the ACK. Not Nagle's algorithm: full segments do not wait."
            ),
            frames_of=of_many("first", min(len(waits.rtts_ns), SHOWN), len(waits.rtts_ns)),
        ),
        remedy=Remedy(
            f"Allow {case.the_sender} more data in flight: {_what_limits(case)}. Or set quickack on the route of "
            f"{case.the_receiver}: it then acknowledges each segment at once.",
            settings=("ip route change <route> quickack 1",),
            side_effects="Every segment is acknowledged: more packets on the return path.",
        ),
    )


def _what_limits(case: Case) -> str:
    """Return what keeps a single segment in flight: the window, unless it has room for more."""
    window_bytes, size = case.data.receive_window_mean_bytes, case.data.max_payload_bytes
    if window_bytes is None or not size or window_bytes < ROOM * size:
        return f"raise {case.the_receiver}'s receive window, which has no room for a second segment"
    return (
        f"its send buffer or congestion window holds one segment, though {case.the_receiver}'s window has room for "
        f"{window_bytes / size:,.0f}. Enlarge that buffer or window, or write more than one segment at "
        "a time (small stacks such as uIP send one and wait)"
    )


RULE = Rule(
    code="TW408",
    name="delayed-acks",
    title="the sender waited for delayed ACKs",
    severity=Severity.WARNING,
    scope="direction",
    limits=("delayed_ack",),
    judge=judge,
    page=__doc__,
    when=(("delayed_acks", ">=", "{waits}"),),
    thresholds={
        "waits": Threshold(3, "count", "An application may write just as the ACK arrives once or twice."),
        "cost_ns": Threshold(100_000_000, "ns", "Two or three delayed ACKs: people notice about a tenth of a second."),
        "share": Threshold(0.02, "share", "Less than 2 % of the time with data to send is barely noticeable."),
    },
)
