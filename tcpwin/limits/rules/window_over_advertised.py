"""## What it finds

The receiver dropped data within the window it had offered: the segments arrived, were not acknowledged, and had to be
retransmitted.

## Why it matters

A window promises buffer space. If it promises more than memory holds, data is lost at the last step, the sender
interprets that as congestion and slows down, and no tool on the network sees a drop. Cloudflare saw this with a patch
that drops instead of collapsing; the user-space stack passt had the problem until its window was limited to what its
socket can take.

## How it is judged

Segments that the path refused for their size (TW312) do not count.

Near the receiver: at least `dropped` segments were captured, within the window, and captured again later, after ACKs
that asked for them or a timeout without an ACK; nothing arrived out of order, and nothing was reported as received
twice (DSACK).

Anywhere: data was lost at two or more times, and at more than half of them unread data had filled at least a quarter
of the window's maximum, as the last ACK before the loss shows. A path loses segments whatever the receiver has read:
the probability that it would have lost so often at such times, given the share of all data that arrived then, is at
most 0.1 %. Several thresholds are tried, in eighths of the maximum, because the memory that a byte takes varies.
Or everything was lost for a second or more, as in an outage of the path (TW313), each time after so much unread data.

The receiver's counters (`nstat`), if they are available, make it certain.

## When it is wrong

Between the capture point and TCP a packet can be lost for other reasons: a bad checksum (TcpInCsumErrors), a full
backlog (TcpExtTCPBacklogDrop), a firewall on the host. The receiver's `nstat` shows the difference: TcpExtTCPRcvQDrop,
TCPOFODrop, RcvPruned.

## What to do

Make the window promise less for the same memory: a smaller `net.ipv4.tcp_adv_win_scale` (before Linux 6.6), optionally
with a larger third value of `net.ipv4.tcp_rmem`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tcpwin.analysis import Event
from tcpwin.limits.case import Case
from tcpwin.limits.evidence.dropped import DROPPED, LOSS_ITEMS
from tcpwin.limits.evidence.hosts import growth
from tcpwin.limits.evidence.outages import find_refusals
from tcpwin.limits.evidence.receive_buffer import more_overhead
from tcpwin.limits.evidence.refused import lost_unread
from tcpwin.limits.evidence.sizes import find_size_limit
from tcpwin.limits.finding import Evidence, Finding, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text, time_text

FRAMES = 6
RETRANSMISSIONS = ("retransmission", "fast_retransmission", "rto_retransmission")
ALL_SHARE = 0.9
CAUSES = ("fast", "recovery", "lost_retransmission", "rto")
"""Retransmissions of data that the receiver did not acknowledge. Others also repeat data that is only out of order."""


def judge(case: Case) -> Iterator[Finding]:
    shown = _captured_before(case) or _among_unread(case) or _for_a_time(case)
    if shown is None or find_size_limit(case) is not None:
        return
    data, receiver = case.data, case.receiver
    counted = growth(case.host(receiver), *DROPPED)
    is_counted = sum(counted.values()) > 0
    clause = f"; its kernel counted {count_text(sum(counted.values()), 'dropped packet')}" if is_counted else ""
    pairs = [frame for event in shown.events[: FRAMES // 2] for frame in (event.original_frame or 0, event.frame)]
    # Other losses are the path's, and so is their part of the time.
    lost_ns = _lost_ns(case)
    cost_ns = round(lost_ns * (1 if shown.share >= ALL_SHARE else shown.share))
    yield case.finding(
        f"{case.the_receiver} dropped data within its offered window: {shown.text}{clause}. Loss cost "
        f"{time_text(cost_ns)}, {time_text(min(data.recovery_ns, cost_ns))} of it in recovery",
        owner="host",
        side=receiver,
        confidence="certain" if is_counted else "likely",
        cost_ns=cost_ns,
        evidence=Evidence(
            frames=tuple(pairs),
            start_ns=shown.events[0].time_ns if shown.events else None,
            end_ns=shown.events[-1].time_ns if shown.events else None,
            values={
                "sent_again": shown.resent,
                "resent_segments": data.resent_segments,
                "recovery_ns": data.recovery_ns,
            }
            | counted,
            ruled_out=shown.ruled_out,
        ),
        remedy=more_overhead(case.host(receiver), case.the_receiver),
    )


class _Shown(NamedTuple):
    """The refused segments' retransmissions, how many there were, their share of all losses, and how they show it."""

    events: Sequence[Event]
    resent: int
    share: float
    text: str
    ruled_out: str


def _captured_before(case: Case) -> _Shown | None:
    """Return the segments that were captured near the receiver and had to be retransmitted."""
    data = case.data
    is_disturbed = data.out_of_order or data.dsacks or data.spurious_by_timestamps or data.spurious_by_frto
    if is_disturbed or not data.captured_near_receiver:
        return None
    resent = case.events(*RETRANSMISSIONS, side=case.sender, causes=CAUSES)
    again = [event for event in resent if event.original_frame is not None]
    if len(again) < case.settings["dropped"]:
        return None
    return _Shown(
        again,
        len(again),
        len(again) / len(resent),
        f"{count_text(len(again), 'segment')} reached it and had to be retransmitted",
        "Not loss on the network: the first copies were captured at the receiver, in order.",
    )


def _among_unread(case: Case) -> _Shown | None:
    """Return the losses that only a receiver short of memory explains."""
    found = lost_unread(case)
    if found is None or case.data.resent_segments < case.settings["dropped"]:
        return None
    events = [event for event in case.events(side=case.sender) if event.cause and event.original_frame is not None]
    ruled_out = "Not loss on the network, which would strike whatever the receiver has read."
    return _Shown(events, case.data.resent_segments, found.share, found.text, ruled_out)


def _for_a_time(case: Case) -> _Shown | None:
    """Return the retransmissions while everything was refused, if only a receiver short of memory explains it."""
    found = find_refusals(case)
    if found is None:
        return None
    spans = [(each.start_ns, each.end_ns) for each in found.times]
    events = [
        event
        for event in case.events(*RETRANSMISSIONS, side=case.sender, causes=CAUSES)
        if any(start_ns <= event.time_ns <= end_ns for start_ns, end_ns in spans)
    ]
    refused_ns = sum(each.duration_ns for each in found.times)
    return _Shown(
        events,
        len(events),
        min(refused_ns / max(_lost_ns(case), 1), 1.0),
        f"for {time_text(refused_ns)} in all nothing that was sent was acknowledged; {found.unread.text}",
        "Not an outage of the path, which would strike whatever the receiver has read.",
    )


def _lost_ns(case: Case) -> int:
    """Return the time of the budget that was lost to losses."""
    return sum(getattr(case.data, f"budget_{item}_ns") for item in LOSS_ITEMS)


RULE = Rule(
    code="TW211",
    name="window-over-advertised",
    title="the receiver dropped data within its window",
    severity=Severity.WARNING,
    scope="direction",
    limits=("receiver_memory",),
    judge=judge,
    page=__doc__,
    when=(
        ("resent_segments", ">=", "{dropped}"),
        ("window_overrun", "==", 0),
    ),
    thresholds={
        "dropped": Threshold(5, "count", "Single packets may be lost between the driver and TCP for other reasons.")
    },
)
