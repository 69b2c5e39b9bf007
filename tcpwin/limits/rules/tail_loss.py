"""## What it finds

The last segments of a message were lost, and only a tail loss probe repaired the loss.

## Why it matters

Nothing follows the last segment of a message that could trigger a duplicate ACK, so the sender must wait: two round
trips, plus 200 ms if a single segment is outstanding (RFC 8985 §7.2, Linux `tcp_schedule_loss_probe`). This delays
short answers, remote procedure calls and the end of every message.

## How it is judged

`tail_loss_probes` counts probes that retransmitted the last segment; there are at least `probes` of them. Those that
DSACK, timestamps or F-RTO prove needless are subtracted, longest waits first. The cost is the time since the same bytes
were last sent, minus one smoothed round trip; the sum is at least `cost_ns`, and at least `share` of the time
with data to send.

## When it is wrong

If the receiver does not report duplicates (DSACK, RFC 2883), nothing shows that a probe was needless: a late delayed
ACK looks the same. The finding is therefore at most `likely`. A short retransmission timer looks like a probe; the tail
was lost either way.

## What to do

Find where the path loses packets. If more data follows at once (fewer, larger writes; pipelined requests), SACK can
repair the loss in one round trip. The probe itself is the cheap case: without it the sender would wait longer for the
timer.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.analysis import Event
from tcpwin.limits.case import Case
from tcpwin.limits.evidence.loss import (
    culprit,
    memory_remedy,
    needless,
    pairs,
    pairs_shown,
    resent,
    share_of,
    wait_ns,
    weaker,
)
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.names import FIND_LOSS
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text, share_text, time_text


def judge(case: Case) -> Iterator[Finding]:
    data = case.data
    # It is unknown which retransmissions were needless: all of them may have been probes.
    lost = data.tail_loss_probes - needless(case) - data.spurious_retransmissions
    if lost <= 0:
        return
    probes = [event for event in resent(case, "tail_loss_probe") if _was_lost(case, event)]
    events = sorted(probes, key=lambda event: wait_ns(case, event))[:lost]
    cost_ns = sum(wait_ns(case, event) for event in events)
    share = share_of(case, cost_ns)
    if not events or cost_ns < case.settings["cost_ns"] or share < case.settings["share"]:
        return
    guilty = culprit(case, events)
    yield case.finding(
        f"{case.the_sender} waited {time_text(cost_ns)} ({share_text(share)} of the time with data to send) to "
        f"retransmit the last segment of a message, by a probe or its timer: it was lost "
        f"{count_text(len(events), 'time')} {guilty.where}",
        owner=guilty.owner,
        limits=guilty.limits,
        side=case.receiver if guilty.owner == "host" else case.sender,
        confidence=weaker(guilty.confidence, "likely"),
        cost_ns=cost_ns,
        evidence=Evidence(
            frames=pairs(events[::-1]),
            start_ns=min(event.time_ns - (event.age_ns or 0) for event in events),
            end_ns=max(event.time_ns for event in events),
            values={
                "tail_loss_probes": data.tail_loss_probes,
                "needless": data.tail_loss_probes - lost,
                "waited_ns": cost_ns,
                "longest_wait_ns": wait_ns(case, events[-1]),
            },
            ruled_out=f"Not late ACKs: no DSACK of {case.the_receiver} reports the probes as duplicates. "
            + guilty.ruled_out,
            frames_of=pairs_shown("longest", events),
        ),
        remedy=memory_remedy(case)
        if guilty.owner == "host"
        else Remedy(
            f"{FIND_LOSS} Let {case.the_sender}'s application write each message in one call, and the next without "
            "waiting, so that ACKs report the loss.",
            side_effects="None for TCP, but the application's protocol must allow it.",
        ),
    )


def _was_lost(case: Case, event: Event) -> bool:
    # Near the sender, data without a captured original was in a SYN, and the peer did not accept it (RFC 7413 §4.2).
    return event.age_ns is not None or (event.confidence != "possible" and case.data.view != "sender")


RULE = Rule(
    code="TW302",
    name="tail-loss",
    title="the last segment of a message was lost",
    severity=Severity.WARNING,
    scope="direction",
    limits=("retransmission_timer", "path_loss"),
    judge=judge,
    page=__doc__,
    when=(("tail_loss_probes", ">=", "{probes}"),),
    thresholds={
        "probes": Threshold(1, "count", "One lost tail delays one message."),
        "cost_ns": Threshold(100_000_000, "ns", "People notice a delay of about a tenth of a second."),
        "share": Threshold(0.02, "share", "Less than 2 % of a connection is barely noticeable."),
    },
    yields_to=("TW314",),
)
