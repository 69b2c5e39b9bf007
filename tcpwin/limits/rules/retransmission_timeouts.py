"""## What it finds

Segments were lost, no ACK reported it, and the sender waited for its retransmission timeout.

## Why it matters

A timeout is the most expensive way to detect a loss: at least 200 ms on Linux on top of the round trip, doubling each
time (RFC 6298 §5.5), and the congestion window falls to one segment (RFC 5681 §3.1). SACK repairs the same loss in
about one round trip.

## How it is judged

`rto_retransmissions` counts retransmissions sent after the timeout had passed without an acknowledgment; there are at
least `timeouts` of them. The cost of each is the time since the same bytes were last sent, minus one smoothed round
trip. Their sum is at least `cost_ns`, and at least `share` of the time with data to send. Timeouts proved
needless (F-RTO, timestamps) are not losses; if that could explain all of them, TW303 reports instead. Bytes
retransmitted more than `overdue` timeouts later were not sent by that timer and do not count. If the receiver never
answered again, it may be gone: the finding is `possible`, and nothing is reported if it had already closed (FIN).

## When it is wrong

Near the receiver the sender's timer is only inferred. From the sender, a receiver that drops data for lack of memory
looks like a lossy path; its host's `nstat` shows the difference. ICMP is not read: a router that refuses packets too
long for the next link ("fragmentation needed", RFC 1191) looks like a path that loses every full segment. The timers
are Linux's; other systems may use shorter ones.

## What to do

Find where the path loses packets. Keep SACK on at both ends (`net.ipv4.tcp_sack`), and `net.ipv4.tcp_recovery` and
`net.ipv4.tcp_early_retrans` on at the sender; they repair most losses without the timer. Within one data centre a
route's `rto_min` shortens the wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tcpwin.analysis import Event
from tcpwin.limits.case import Case
from tcpwin.limits.evidence.capture import rows_of
from tcpwin.limits.evidence.loss import (
    Culprit,
    culprit,
    has_sack,
    memory_remedy,
    pairs,
    pairs_shown,
    resent,
    round_trip_ns,
    share_of,
    wait_ns,
    weaker,
)
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.names import FIND_LOSS
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text, share_text, time_text

LOCAL_NS = 5_000_000
"""A quarter of the suggested rto_min: longer round trips vary by that much."""
DEFAULTS = {"net.ipv4.tcp_sack": 1, "net.ipv4.tcp_recovery": 1, "net.ipv4.tcp_early_retrans": 3}
"""Linux's defaults, with SACK, RACK and tail loss probes on (Documentation/networking/ip-sysctl.rst)."""


def judge(case: Case) -> Iterator[Finding]:
    data = case.data
    if data.spurious_by_frto + data.spurious_by_timestamps >= data.rto_retransmissions:
        return
    events = [event for event in resent(case, "rto") if _is_by_timer(case, event)]
    cost_ns = sum(wait_ns(case, event) for event in events)
    share = share_of(case, cost_ns)
    if not events or cost_ns < case.settings["cost_ns"] or share < case.settings["share"]:
        return
    by_cost = sorted(events, key=lambda event: -wait_ns(case, event))
    is_answered = _is_answered(case, events)
    if not is_answered and case.back.fin:
        return
    guilty = culprit(case, events) if is_answered else _gone(case)
    sure = "possible" if any(event.confidence == "possible" for event in events) else "certain"
    times = count_text(len(events), "retransmission timeout")
    yield case.finding(
        f"{case.the_sender} waited {time_text(cost_ns)} ({share_text(share)} of the time with data to send) for "
        f"{times}: segments were lost {guilty.where}, and no ACK reported it",
        owner=guilty.owner,
        limits=guilty.limits,
        side=case.receiver if guilty.owner == "host" else case.sender,
        confidence=weaker(guilty.confidence, sure),
        cost_ns=cost_ns,
        evidence=Evidence(
            frames=pairs(by_cost),
            start_ns=events[0].time_ns - (events[0].age_ns or 0),
            end_ns=events[-1].time_ns,
            values={
                "timeouts": len(events),
                "waited_ns": cost_ns,
                "longest_wait_ns": wait_ns(case, by_cost[0]),
                "retransmissions": data.retransmissions,
                "sack": {True: "yes", False: "no", None: "unknown"}[has_sack(case)],
            },
            ruled_out="Not late ACKs: neither DSACK, timestamps nor later ACKs prove these timeouts needless. "
            + guilty.ruled_out,
            frames_of=pairs_shown("longest", events),
        ),
        remedy=memory_remedy(case) if guilty.owner == "host" else _remedy(case),
    )


def _is_by_timer(case: Case, event: Event) -> bool:
    if event.age_ns is None:
        # Near the sender, data without a captured original was in a SYN, and the peer did not accept it (RFC 7413
        # §4.2).
        return event.confidence != "possible" and case.data.view != "sender"
    return not event.rto_ns or event.age_ns <= case.settings["overdue"] * event.rto_ns


def _is_answered(case: Case, events: Sequence[Event]) -> bool:
    """Whether the receiver sent anything after the first timeout; True if the segments cannot be read again."""
    if case.connection.end_ns > events[-1].time_ns:
        return True
    rows, first_ns = rows_of(case), events[0].time_ns
    return not rows or any(row["direction"] == case.receiver and row["time_ns"] > first_ns for row in rows)


def _gone(case: Case) -> Culprit:
    return Culprit(
        "network",
        f"on the path, or {case.the_receiver} is gone: it never answered again",
        "possible",
        f"Not ruled out: {case.the_receiver} was switched off, or lost its connection.",
    )


def _remedy(case: Case) -> Remedy:
    if has_sack(case) is False:
        lacking = [
            s for s, d in (("a", case.connection.a_to_b), ("b", case.connection.b_to_a)) if not d.syn_sack_permitted
        ]
        sides = " and ".join(case.the(side) for side in lacking)
        return Remedy(
            f"Permit SACK on {sides}: without it, several losses in one flight end in a timeout. Then find where the "
            "path "
            "loses packets.",
            settings=("sysctl -w net.ipv4.tcp_sack=1",),
            side_effects="This changes new connections only. SACK costs the sender some memory and work in recovery.",
        )
    host = case.host(case.sender)
    settings = host.settings if host is not None else None
    changed = [
        f"sysctl -w {name}={value}"
        for name, value in DEFAULTS.items()
        if settings is not None and settings.number(name) == 0
    ]
    if changed:
        return Remedy(
            f"Switch loss detection by SACK, RACK and tail loss probes on again at {case.the_sender}.",
            settings=tuple(changed),
            side_effects="More retransmissions leave early; some are needless if the path reorders.",
        )
    if round_trip_ns(case) >= LOCAL_NS:
        # Below the path's own delay a timer only repeats what is under way.
        return Remedy(FIND_LOSS)
    return Remedy(
        f"{FIND_LOSS} Within one data centre, a route's rto_min on {case.the_sender} shortens the wait.",
        settings=("ip route change <route> rto_min 20ms",),
        side_effects="Below 40 ms, delayed ACKs cause needless timeouts.",
    )


RULE = Rule(
    code="TW301",
    name="retransmission-timeouts",
    title="the sender waited for its retransmission timer",
    severity=Severity.WARNING,
    scope="direction",
    limits=("retransmission_timer", "path_loss"),
    judge=judge,
    page=__doc__,
    when=(("rto_retransmissions", ">=", "{timeouts}"),),
    thresholds={
        "timeouts": Threshold(1, "count", "A single timeout can stall a transfer for seconds."),
        "cost_ns": Threshold(150_000_000, "ns", "Linux waits at least 200 ms (TCP_RTO_MIN), including the round trip."),
        "share": Threshold(0.02, "share", "Less than 2 % of a connection is barely noticeable."),
        "overdue": Threshold(8, "times", "A minimum timeout of 1 s (RFC 6298 §2.4) is five times Linux's 200 ms."),
    },
    yields_to=("TW314",),
)
