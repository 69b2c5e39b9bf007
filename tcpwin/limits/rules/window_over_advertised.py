"""## What it finds

The receiver dropped data within the window it had offered: the segments arrived, were not acknowledged, and had to be
retransmitted.

## Why it matters

A window promises buffer space. If it promises more than memory holds, data is lost at the last step, the sender
interprets that as congestion and slows down, and no tool on the network sees a drop. Cloudflare saw this with a patch
that drops instead of collapsing; the user-space stack passt had the problem until its window was limited to what its
socket can take.

## How it is judged

The capture was made near the receiver. At least `dropped` segments were captured, within the window, and captured again
later as fast retransmissions, that is, after ACKs that asked for them; nothing arrived out of order, and nothing was
reported as received twice (DSACK).

## When it is wrong

Between the capture point and TCP a packet can be lost for other reasons: a bad checksum (TcpInCsumErrors), a full
backlog (TcpExtTCPBacklogDrop), a firewall on the host. The receiver's `nstat` shows the difference: TcpExtTCPRcvQDrop,
TCPOFODrop, RcvPruned.

## What to do

Make the window promise less for the same memory: a smaller `net.ipv4.tcp_adv_win_scale` (before Linux 6.6), optionally
with a larger third value of `net.ipv4.tcp_rmem`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.dropped import DROPPED
from tcpwin.limits.evidence.hosts import growth
from tcpwin.limits.evidence.receive_buffer import more_overhead
from tcpwin.limits.finding import Evidence, Finding, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text, time_text

FRAMES = 6
CAUSES = ("fast", "recovery", "lost_retransmission")
"""Retransmissions that ACKs asked for. Probes and timeouts also repeat data that arrived."""


def judge(case: Case) -> Iterator[Finding]:
    data, receiver = case.data, case.receiver
    resent = case.events("retransmission", "fast_retransmission", side=case.sender, causes=CAUSES)
    again = [event for event in resent if event.original_frame is not None]
    if len(again) < case.settings["dropped"]:
        return
    counted = growth(case.host(receiver), *DROPPED)
    is_counted = sum(counted.values()) > 0
    # Recovery time is the receiver's fault only if nothing else was lost.
    cost_ns = data.recovery_ns if len(again) >= 0.9 * (data.resent_segments - data.tail_loss_probes) else 0
    clause = f"; its kernel counted {count_text(sum(counted.values()), 'dropped packet')}" if is_counted else ""
    pairs = [frame for event in again[: FRAMES // 2] for frame in (event.original_frame or 0, event.frame)]
    yield case.finding(
        f"{case.the_receiver} dropped data within its offered window: {count_text(len(again), 'segment')} reached it "
        f"and had to be retransmitted{clause}. Recovery took {time_text(cost_ns)}",
        owner="host",
        side=receiver,
        confidence="certain" if is_counted else "likely",
        cost_ns=cost_ns,
        evidence=Evidence(
            frames=tuple(pairs),
            start_ns=again[0].time_ns,
            end_ns=again[-1].time_ns,
            values={"sent_again": len(again), "resent_segments": data.resent_segments, "recovery_ns": data.recovery_ns}
            | counted,
            ruled_out="Not loss on the network: the first copies were captured at the receiver, in order.",
        ),
        remedy=more_overhead(case.host(receiver), case.the_receiver),
    )


RULE = Rule(
    code="TW211",
    name="window-over-advertised",
    title="the receiver dropped data within its window",
    severity=Severity.WARNING,
    scope="direction",
    limits=("path_loss",),
    judge=judge,
    page=__doc__,
    when=(
        ("captured_near_receiver", "==", True),
        ("resent_segments", ">=", "{dropped}"),
        ("out_of_order", "==", 0),
        ("dsacks", "==", 0),
        ("window_overrun", "==", 0),
        ("spurious_by_timestamps", "==", 0),
        ("spurious_by_frto", "==", 0),
    ),
    thresholds={
        "dropped": Threshold(5, "count", "Single packets may be lost between the driver and TCP for other reasons.")
    },
)
