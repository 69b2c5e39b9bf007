"""## What it finds

A retransmission was lost too.

## Why it matters

A retransmission is sent after the window has been reduced. If it is also lost, the loss lasts longer than a round trip:
a queue that stays full, a policer, or an outage. The repair takes one more round trip with RACK (RFC 8985), and a
timeout without it.

## How it is judged

`lost_retransmissions` counts bytes that the same fast recovery had already retransmitted, minus those for which a DSACK
(RFC 2883) later showed that the earlier retransmission had arrived. The cost is the time since the bytes were last
sent. Overlapping waits count once, and time that a DSACK disproves does not count. The cost is at least `cost_ns`, and
there are at least `segments` of them. Captures near the receiver often miss them.

## When it is wrong

A receiver that refuses data for lack of memory refuses retransmissions too.

## What to do

Find what drops packets for so long: a policer (drops above a fixed rate), a full queue, a radio link. Keep
`net.ipv4.tcp_recovery=1` on the sender.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tcpwin.analysis import Event
from tcpwin.limits.case import Case
from tcpwin.limits.evidence.loss import culprit, memory_remedy, pairs, pairs_shown, resent, weaker
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text, time_text


def judge(case: Case) -> Iterator[Finding]:
    events = resent(case, "lost_retransmission")
    lost = min(case.data.lost_retransmissions, len(events))
    cost_ns = _waited_ns(events) * lost // max(len(events), 1)
    if lost < case.settings["segments"] or cost_ns < case.settings["cost_ns"]:
        return
    guilty = culprit(case, events)
    sure = min((event.confidence or "possible" for event in events), key=("possible", "likely", "certain").index)
    yield case.finding(
        f"{count_text(lost, 'retransmission')} of {case.the_sender} {'was' if lost == 1 else 'were'} "
        f"lost again {guilty.where}: repair took {time_text(cost_ns)} more",
        owner=guilty.owner,
        limits=guilty.limits,
        side=case.receiver if guilty.owner == "host" else None,
        # The DSACKs of the other retransmissions do not show which of these were lost.
        confidence=weaker(guilty.confidence, sure if lost == len(events) else "likely"),
        cost_ns=cost_ns,
        evidence=Evidence(
            frames=pairs(events),
            start_ns=events[0].time_ns,
            end_ns=events[-1].time_ns,
            values={
                "lost_again": lost,
                "waited_ns": cost_ns,
                "retransmissions": case.data.retransmissions,
            },
            ruled_out="Not single losses: the same bytes were sent three times. " + guilty.ruled_out,
            frames_of=pairs_shown("first", events),
        ),
        remedy=memory_remedy(case)
        if guilty.owner == "host"
        else Remedy(
            "Find what drops packets for longer than a round trip: a policer, a queue that stays full, a failing link. "
            f"Keep RACK on at {case.the_sender}.",
            settings=("sysctl -w net.ipv4.tcp_recovery=1",),
            side_effects="None: it is Linux's default.",
        ),
    )


def _waited_ns(events: Sequence[Event]) -> int:
    """Return the time in which at least one of them waited; events are ordered by their end."""
    total_ns, upto_ns = 0, 0
    for event in reversed(events):
        begin_ns = event.time_ns - (event.age_ns or 0)
        end_ns = min(event.time_ns, upto_ns) if upto_ns else event.time_ns
        total_ns += max(end_ns - begin_ns, 0)
        upto_ns = min(begin_ns, end_ns)
    return total_ns


RULE = Rule(
    code="TW309",
    name="lost-retransmission",
    title="a retransmission was lost again",
    severity=Severity.WARNING,
    scope="direction",
    limits=("path_loss",),
    judge=judge,
    page=__doc__,
    when=(("lost_retransmissions", ">=", "{segments}"),),
    thresholds={
        "segments": Threshold(2, "count", "At 1 % random loss one retransmission in a hundred is lost by chance."),
        "cost_ns": Threshold(150_000_000, "ns", "Less is barely noticeable in a transfer with losses."),
    },
    yields_to=("TW211", "TW308"),
)
