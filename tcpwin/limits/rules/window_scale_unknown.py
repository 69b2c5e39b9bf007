"""## What it finds

The capture began after the connection, so the scale of its windows is unknown.

## Why it matters

The shift appears only in the SYN and the SYN/ACK (RFC 7323 §2.2). Without it the window field has 15 possible meanings:
whether the window held the sender back cannot be determined, and no rule on windows judges this direction.

## How it is judged

Neither the SYNs nor a snapshot of the socket shows the shift, and at least `least_bytes` were sent. The packets bound
the range of shifts: more data in flight than a shift can express rules it out.

## When it is wrong

This is a gap in the capture, not a fault of the connection.

## What to do

Start the capture before the connection. Or run `ss -tin` at either end while it is open, and analyse with that file:
its `wscale:` shows both shifts.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold


def judge(case: Case) -> Iterator[Finding]:
    data, connection = case.data, case.connection
    scale = data.window_scale
    if scale.state == "syn_only":
        why = "the capture holds only a SYN of this connection"
    elif case.back.syn_seen:
        why = f"the capture cut off the options of {case.the_receiver}'s SYN"
    elif data.syn_seen:
        why = f"the capture lacks {case.the_receiver}'s SYN"
    else:
        why = "the capture holds no SYN of this connection"
    peer = connection.b if case.receiver == "b" else connection.a
    yield case.finding(
        f"The scale of {case.the_receiver}'s window is unknown (a shift of {scale.shift_min} to {scale.shift_max}), so "
        f"windows are not judged: {why}",
        owner="nobody",
        confidence="certain",
        evidence=Evidence(
            frames=(connection.first_frame,),
            start_ns=connection.start_ns,
            end_ns=connection.end_ns,
            values={
                "shift_min": scale.shift_min,
                "shift_max": scale.shift_max,
                "flight_max_bytes": data.flight_max_bytes or 0,
                "payload_bytes": data.payload_bytes,
            },
        ),
        remedy=Remedy(
            "Start the capture before the connection, or save the output of `ss` at either end while it is open and "
            "analyse with it.",
            settings=(f"ss -tin 'sport = :{peer.port} or dport = :{peer.port}'",),
        ),
    )


RULE = Rule(
    code="TW104",
    name="window-scale-unknown",
    title="the capture does not show the window scale",
    severity=Severity.INFO,
    scope="direction",
    limits=("receiver_window",),
    judge=judge,
    page=__doc__,
    when=(("payload_bytes", ">=", "{least_bytes}"), ("window_scale_shift", "==", None)),
    thresholds={"least_bytes": Threshold(1_000_000, "bytes", "A receive window rarely limits a smaller transfer.")},
)
