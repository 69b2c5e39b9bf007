"""## What it finds

The sender held a small segment back until the previous one was acknowledged, and the receiver delayed that ACK.

## Why it matters

Each side waits for the other: Nagle's algorithm for the ACK (RFC 9293 §3.7.4, Linux `tcp_nagle_check`), the receiver
for a second segment (RFC 9293 §3.8.6.3). Every message that is written in two parts stalls for 40 ms on Linux and up to
200 ms on other systems.

## How it is judged

`nagle_delays` counts small segments that left within 2 ms after the delayed ACK of another small segment reached their
sender, with nothing else in flight and no data from the other side in between. `nagle_delay_ns`, the total delay of
these ACKs, is at least `cost_ns` and at least `share` of the time with data to send. Without Nagle's algorithm
the small segments would not wait for the round trip either: if that is more than `rest` of their whole wait, the limit
is Nagle's algorithm and the cost the whole wait, unless the round trips are most of it (TW410).

## When it is wrong

An application that happens to write at exactly that moment looks the same. One or two may be chance; three or more make
the finding `certain`.

## What to do

Write each message in one call (a buffer, `writev`), or set TCP_NODELAY on the sender's socket. On the receiver,
TCP_QUICKACK or a route with `quickack 1` also removes the delay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.lone_segments import Waits, waits_of
from tcpwin.limits.evidence.loss import share_of
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity, of_many
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text, share_text, time_text

SURE = 3
FRAMES = 6


def judge(case: Case) -> Iterator[Finding]:
    data = case.data
    share = share_of(case, data.nagle_delay_ns)
    if share < case.settings["share"]:
        return
    waits = waits_of(case, is_delayed=True, is_full=False) if case.may_read else Waits()
    acks = [frame for _, frame, _ in waits.triples]
    rest_ns = data.nagle_wait_ns - data.nagle_delay_ns
    is_nagle = rest_ns > case.settings["rest"] * data.nagle_wait_ns
    finding = case.finding(
        f"{case.the_sender} waited {time_text(data.nagle_delay_ns)} ({share_text(share)} of the time with data to "
        f"send) for {case.the_receiver}'s delayed ACKs: Nagle's algorithm delayed "
        f"{count_text(data.nagle_delays, 'small segment')}",
        owner="application",
        side=case.sender,
        confidence="certain" if data.nagle_delays >= SURE else "likely",
        cost_ns=data.nagle_delay_ns,
        evidence=Evidence(
            frames=tuple(acks[:FRAMES]) or (case.connection.first_frame,),
            start_ns=waits.start_ns or None,
            end_ns=waits.end_ns or None,
            values={
                "nagle_delays": data.nagle_delays,
                "nagle_delay_ns": data.nagle_delay_ns,
                "delayed_acks": data.delayed_acks,
                "rtt_min_ns": data.rtt_min_ns or 0,
            },
            ruled_out=(
                "Not a slow path: these ACKs came 40 ms or more after the fastest. Not a busy application: its data "
                "left with the ACK."
            ),
            frames_of=of_many("first", min(len(acks), FRAMES), len(acks)),
        ),
        remedy=Remedy(
            f"Let {case.the_sender}'s application write each message in one call, or set TCP_NODELAY on its socket.",
            settings=("setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int))",),
            side_effects="With TCP_NODELAY each write becomes a separate packet: small writes cost more packets.",
        ),
    )
    if is_nagle:
        whole_ns = data.nagle_wait_ns if rest_ns < data.nagle_delay_ns else data.nagle_delay_ns
        finding = replace(finding, limits=("nagle",), cost_ns=whole_ns)
    else:
        finding = replace(finding, limits=("delayed_ack",))
    yield finding


RULE = Rule(
    code="TW405",
    name="nagle-delayed-ack",
    title="small segments waited for delayed ACKs",
    severity=Severity.WARNING,
    scope="direction",
    limits=("delayed_ack", "nagle"),
    judge=judge,
    page=__doc__,
    when=(("nagle_delays", ">=", 1), ("nagle_delay_ns", ">=", "{cost_ns}")),
    thresholds={
        "cost_ns": Threshold(100_000_000, "ns", "Two or three delayed ACKs: people notice about a tenth of a second."),
        "rest": Threshold(0.05, "share", "A smaller difference is within the uncertainty of round trips."),
        "share": Threshold(0.02, "share", "Less than 2 % of the time with data to send is barely noticeable."),
    },
)
