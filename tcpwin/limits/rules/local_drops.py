"""## What it finds

Near the sender: segments were retransmitted whose originals never appear in the capture. The sender's own host dropped
them before the capture point.

## Why it matters

Linux passes packets to captures after the queueing discipline. A drop in the host's own full or shaping queue therefore
appears only as a hole in the sequence numbers, and later as a retransmission. The network is then blamed for a local
loss.

## How it is judged

The capture was made on the sender's host or on its link (`sender_shift_ns` at most `host_ns`); at least `segments`
retransmissions have no original in the capture; and the capture lost nothing else (`missed_bytes` is 0: a
retransmission filled every hole). A capture is unlikely to drop exactly the packets that the network also loses.

## When it is wrong

A capture that began in the middle of the connection has no originals at its start. A capture that drops heavily may be
missing originals; `missed_bytes` shows most of this. With more than 4,096 segments in flight the original's frame may
be unknown; the rule is silent if such segments include bytes that the capture contains twice.

## What to do

Run `tc -s qdisc` on the sender: `dropped` and `overlimits` identify the queue. Raise its limit, or use `fq`, with which
TCP holds segments back instead. Check `ip -s link` for drops by the network card as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tcpwin.analysis import Event
from tcpwin.limits.case import Case
from tcpwin.limits.evidence.loss import resent
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.reading import count_originals
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text

CAUSES = ("rto", "go_back_n", "fast", "recovery", "lost_retransmission", "tail_loss_probe", "unknown")
LATE = ("out_of_order", "capture_reordered")


def judge(case: Case) -> Iterator[Finding]:
    if (case.data.sender_shift_ns or 0) > case.settings["host_ns"]:
        return
    events = resent(case, *CAUSES)
    if len(events) - count_originals(events) < case.settings["segments"]:
        return
    unseen = [event for event in events if event.original_frame is None]
    if _were_seen(case, unseen):
        return
    data = case.data
    is_all = len(unseen) == len(events)
    yield case.finding(
        f"{case.the_sender} dropped {count_text(len(unseen), 'segment')} on its own host: the capture there never "
        "saw them leave, and they were sent again",
        owner="host",
        side=case.sender,
        confidence="likely",
        cost_ns=data.recovery_ns if is_all else 0,
        evidence=Evidence(
            frames=tuple(event.frame for event in unseen[:10]),
            start_ns=unseen[0].time_ns,
            end_ns=unseen[-1].time_ns,
            values={
                "without_original": len(unseen),
                "retransmissions": len(events),
                "previous_segment_missing": data.previous_segment_missing,
                "missed_bytes": data.missed_bytes,
            },
            ruled_out=(
                "Not the network: what leaves is captured first. Not loss in the capture: a retransmission filled "
                "every hole."
            ),
        ),
        remedy=Remedy(
            f"Look at `tc -s qdisc` on {case.the_sender}, and replace a queue that drops with fq, which slows TCP down "
            "instead.",
            settings=("tc qdisc replace dev <interface> root fq",),
            side_effects="This replaces an intended shaper: configure its rate again.",
        ),
    )


def _were_seen(case: Case, unseen: Sequence[Event]) -> bool:
    """Whether the capture contains some of these bytes twice: in a large flight the original's frame is unknown."""
    if not case.may_follow:
        return False
    again = sum(event.length for event in resent(case) if event.cause and event.cause not in LATE)
    unseen_bytes, new_bytes = sum(event.length for event in unseen), again - case.data.resent_bytes
    return unseen_bytes - new_bytes >= min(event.length for event in unseen) > 0


RULE = Rule(
    code="TW308",
    name="local-drops",
    title="the sender's host dropped segments before the wire",
    severity=Severity.WARNING,
    scope="direction",
    limits=("path_loss",),
    judge=judge,
    page=__doc__,
    when=(
        ("view", "==", "sender"),
        ("previous_segment_missing", ">=", 1),
        ("retransmissions", ">=", "{segments}"),
        ("missed_bytes", "==", 0),
        ("out_of_order", "==", 0),
    ),
    thresholds={
        "segments": Threshold(2, "count", "A single segment may be lost by the capture and the network at once."),
        "host_ns": Threshold(
            100_000, "ns", "On the host itself the stack answers within this time; across a link it often does not."
        ),
    },
)
