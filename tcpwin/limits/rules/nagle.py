"""## What it finds

The sender held small segments back until the previous one was acknowledged, although no ACK was delayed.

## Why it matters

Nagle's algorithm (RFC 9293 §3.7.4) sends a small segment only once everything before it is acknowledged. A message that
is written in two parts then takes a round trip more than one written at once, which hurts on long paths.

## How it is judged

`nagle_waits` counts small segments that left as soon as the ACK of a small one before them reached their sender, with
nothing in flight and no data from the other side in between. There are at least `waits` of them. The cost is the time
from each small segment to its ACK, less the delay of delayed ACKs (TW405), which must be the smaller part. It is at
least `cost_ns` and at least `share` of the time with data to send.

## When it is wrong

An application that happens to write just as the ACK arrives looks the same, but this rarely happens several times. A
stack that keeps only one segment in flight, as some embedded systems do, waits in the same way; TCP_NODELAY does not
help it. Segments of one size are not counted for that reason.

## What to do

Write each message in one call (a buffer, `writev`), or set TCP_NODELAY on the sender's socket.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.lone_segments import Waits, waits_of
from tcpwin.limits.evidence.loss import share_of
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity, of_many
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text, share_text, time_text

SHOWN = 4


def judge(case: Case) -> Iterator[Finding]:
    data = case.data
    cost_ns = data.nagle_wait_ns - data.nagle_delay_ns
    share = share_of(case, cost_ns)
    if cost_ns < max(case.settings["cost_ns"], data.nagle_delay_ns) or share < case.settings["share"]:
        return
    waits = waits_of(case, is_delayed=False, is_full=False) if case.may_read else Waits()
    yield case.finding(
        f"{case.the_sender} waited {time_text(cost_ns)} ({share_text(share)} of the time with data to send) for "
        f"{case.the_receiver}'s ACKs: Nagle's algorithm held back {count_text(data.nagle_waits, 'small segment')} for "
        "a round trip each",
        owner="application",
        side=case.sender,
        confidence="likely",
        cost_ns=cost_ns,
        evidence=Evidence(
            frames=waits.frames(SHOWN) or (case.connection.first_frame,),
            start_ns=waits.start_ns or None,
            end_ns=waits.end_ns or None,
            values={
                "nagle_waits": data.nagle_waits,
                "nagle_wait_ns": data.nagle_wait_ns,
                "nagle_delay_ns": data.nagle_delay_ns,
                "rtt_min_ns": data.rtt_min_ns or 0,
            },
            frames_of=of_many("first", min(len(waits.triples), SHOWN), len(waits.triples)),
            ruled_out=(
                "Not delayed ACKs: they came within a round trip. Not a busy application: its data left with the ACK."
            ),
        ),
        remedy=Remedy(
            f"Let {case.the_sender}'s application write each message in one call, or set TCP_NODELAY on its socket.",
            settings=("setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int))",),
            side_effects="With TCP_NODELAY each write becomes a separate packet: small writes cost more packets.",
        ),
    )


RULE = Rule(
    code="TW410",
    name="nagle",
    title="small segments waited for ACKs",
    severity=Severity.WARNING,
    scope="direction",
    limits=("nagle",),
    judge=judge,
    page=__doc__,
    when=(("nagle_waits", ">=", "{waits}"),),
    thresholds={
        "waits": Threshold(3, "count", "An application may write just as the ACK arrives once or twice."),
        "cost_ns": Threshold(100_000_000, "ns", "People notice about a tenth of a second."),
        "share": Threshold(0.02, "share", "Less than 2 % of the time with data to send is barely noticeable."),
    },
)
