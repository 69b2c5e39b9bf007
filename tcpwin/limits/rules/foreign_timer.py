"""## What it finds

Every retransmission comes the same long time after the last ACK: the timer of a load balancer's or proxy's own TCP
stack, not the path's.

## Why it matters

Operating systems compute the timer from round trips and repair several losses at a time once ACKs return. A stack that
waits a constant number of seconds for each lost segment turns a loss of a millisecond into half a minute.

## How it is judged

At least `retransmissions` retransmissions by timer came after the same silence, within 2 %, of a second or more and of
at least `times` the timeout that the round trips give, although ACKs had moved on after each of them.

## When it is wrong

A host with a large minimum timeout (`rto_min` of a route on Linux, MinRto on Windows) looks the same.

## What to do

Look at the TCP profile of the device that answers as this host: minimum retransmission timeout, SACK and fast recovery.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.loss import resent, round_trip_ns
from tcpwin.limits.evidence.packets import Sent, packets_of, sent_of
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text, time_text

if TYPE_CHECKING:
    from tcpwin.limits.evidence.packets import Numbers

EVEN = 0.02
LEAST_NS = 1_000_000_000
FRAMES = 6


def judge(case: Case) -> Iterator[Finding]:
    packets = packets_of(case)
    sent = None if packets is None else sent_of(packets, case.sender)
    timers = resent(case, "rto")
    if packets is None or sent is None or len(timers) < case.settings["retransmissions"]:
        return
    peer_ns = packets.sent_by(case.receiver)["time_ns"]
    silences = [_silence_ns(sent, peer_ns, each.time_ns) for each in timers]
    usual_ns = sorted(silences)[len(silences) // 2]
    even = [ns for ns in silences if abs(ns - usual_ns) <= EVEN * usual_ns]
    computed_ns = max(min((each.rto_ns or 0 for each in timers), default=0), 2 * round_trip_ns(case))
    if len(even) < max(case.settings["retransmissions"], 0.8 * len(silences)):
        return
    if usual_ns < LEAST_NS or usual_ns < case.settings["times"] * computed_ns:
        return
    yield case.finding(
        f"Each of {count_text(len(even), 'retransmission')} of {case.the_sender} came {time_text(usual_ns)} after the "
        f"last ACK, although ACKs return within {time_text(round_trip_ns(case))}: that is a constant timer of its own "
        "TCP stack, as load balancers and proxies have, not the path",
        owner="host",
        side=case.sender,
        confidence="likely",
        cost_ns=sum(even),
        evidence=Evidence(
            frames=tuple(each.frame for each in timers[:FRAMES]),
            start_ns=timers[0].time_ns - usual_ns,
            end_ns=timers[-1].time_ns,
            values={"timer_ns": usual_ns, "retransmissions": len(even), "computed_rto_ns": computed_ns},
            ruled_out="Not the path: ACKs of each retransmission return at once, and the waits are equal.",
        ),
        remedy=Remedy(
            f"Look at the TCP settings of the device that answers as {case.the_sender} (load balancer, proxy): lower "
            "its minimum retransmission timeout, and let it repair all losses of a flight at once (SACK, NewReno)."
        ),
    )


def _silence_ns(sent: Sent, peer_ns: Numbers, time_ns: int) -> int:
    """Return the time since the last packet of the other side or the last new data, whichever is later."""
    import numpy as np

    heard = int(np.searchsorted(peer_ns, time_ns)) - 1
    begun = int(np.searchsorted(sent.time_ns, time_ns)) - 1
    latest = max(int(peer_ns[heard]) if heard >= 0 else 0, int(sent.time_ns[begun]) if begun >= 0 else 0)
    return time_ns - latest


RULE = Rule(
    code="TW314",
    name="foreign-timer",
    title="a retransmission timer that no operating system has",
    severity=Severity.WARNING,
    scope="direction",
    limits=("retransmission_timer",),
    judge=judge,
    page=__doc__,
    when=(("rto_retransmissions", ">=", "{retransmissions}"),),
    thresholds={
        "retransmissions": Threshold(3, "count", "Two waits may be equal by chance."),
        "times": Threshold(4, "times", "Operating systems' timers stay below this, and double when they repeat."),
    },
)
