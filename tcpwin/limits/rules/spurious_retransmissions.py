"""## What it finds

The sender retransmitted data that the receiver already had: the originals or their ACKs were late, not lost.

## Why it matters

The sender assumes loss. It reduces its congestion window (unless it can undo this), and the same bytes travel twice.
The path is then blamed for a loss that never happened.

## How it is judged

By proof only: an ACK for all the bytes was captured before the retransmission (`spurious_retransmissions`), the
receiver reported duplicates (`spurious_by_dsack`, RFC 2883), the ACK echoed the original's timestamp
(`spurious_by_timestamps`, RFC 3522), or F-RTO proved it (`spurious_by_frto`, RFC 5682). One retransmission may be
proved in two ways, so the largest of the four counts is used. It is at least `segments`, and at least `share` of the
data segments.

## When it is wrong

A copy made by the network looks like a retransmission. ACKs prove nothing if the capture's clock runs backwards, since
the capture may contain packets twice, or if it lacks more of the data than it contains. Near the receiver, a captured
ACK may still be lost on its way to the sender; then the retransmission was justified.

## What to do

Timeouts: find what delays the path for more than 200 ms (a full queue, a radio link, a suspended host), or remove a
small `rto_min` from the route. Fast retransmissions: the path reorders; keep `net.ipv4.tcp_recovery=1` and timestamps
on, so that Linux learns by how much. Probes: the receiver delays its ACKs for a long time; they do no harm.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tcpwin.analysis import Event
from tcpwin.limits.case import Case
from tcpwin.limits.evidence.events import events_of
from tcpwin.limits.evidence.loss import pairs, resent
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import bytes_text, count_text, share_text

FRAMES = 12
CAUSES = ("rto", "go_back_n", "fast", "recovery", "lost_retransmission", "tail_loss_probe", "spurious", "unknown")


def judge(case: Case) -> Iterator[Finding]:
    data = case.data
    proofs = {
        "spurious_retransmissions": data.spurious_retransmissions if _is_sure(case) else 0,
        "spurious_by_dsack": data.spurious_by_dsack,
        "spurious_by_timestamps": data.spurious_by_timestamps,
        "spurious_by_frto": data.spurious_by_frto,
    }
    needless = max(proofs.values())
    # A retransmitted FIN alone carries no data.
    if not data.data_segments or needless < case.settings["segments"]:
        return
    if needless < case.settings["share"] * data.data_segments:
        return
    events = _proved(case, are_all=needless >= data.retransmissions)
    are_proofs = bool(events)
    events = events or resent(case, *CAUSES)
    by_timer = data.rto_retransmissions + data.tail_loss_probes
    by_ack = data.fast_retransmissions + data.recovery_retransmissions
    reason, advice = _explain(case, by_timer=by_timer, by_ack=by_ack)
    yield case.finding(
        f"{case.the_sender} retransmitted {count_text(needless, 'segment')} needlessly "
        f"({share_text(needless / data.data_segments, places=1)} of its data segments): {reason}",
        owner="network",
        side=case.sender,
        confidence="certain" if data.view == "sender" or proofs["spurious_retransmissions"] < needless else "likely",
        evidence=Evidence(
            frames=tuple(event.frame for event in events[:FRAMES]) if are_proofs else pairs(events),
            start_ns=events[0].time_ns if events else None,
            end_ns=events[-1].time_ns if events else None,
            values={
                **{name: count for name, count in proofs.items() if count},
                "retransmissions": data.retransmissions,
                "data_segments": data.data_segments,
                "resent_bytes": data.resent_bytes,
            },
            ruled_out=f"Not loss: {case.the_receiver} reported that it already had the bytes.",
        ),
        remedy=Remedy(
            f"{advice} {bytes_text(data.resent_bytes)} were retransmitted in total.",
            side_effects="A sender that waits longer before retransmitting repairs real losses later.",
        ),
    )


def _is_sure(case: Case) -> bool:
    """Whether an earlier ACK proves each retransmission needless; False if there is none."""
    data = case.data
    # A capture concatenated from two captures of the same packets holds each twice, and its clock steps back at the
    # seam. If it lacks more of the data than it holds, the segments it holds may be originals.
    return (
        data.spurious_retransmissions > 0
        and case.analysis.capture.time_backwards == 0
        and data.missed_bytes <= data.unique_bytes
    )


def _proved(case: Case, *, are_all: bool) -> Sequence[Event]:
    """Return the receiver's DSACKs (RFC 2883), and the retransmissions that an earlier ACK had covered.

    The events do not say which segment a DSACK refers to; if all were needless, all are returned.
    """
    causes = CAUSES if are_all else ("spurious",)
    own, proofs = resent(case, *causes), events_of(case, "dsack", side=case.receiver)
    is_proved = proofs or any(event.cause == "spurious" for event in own)
    return sorted([*own, *proofs], key=lambda event: event.frame) if is_proved else []


def _explain(case: Case, *, by_timer: int, by_ack: int) -> tuple[str, str]:
    if by_timer > by_ack:
        return (
            f"their ACKs arrived after {case.the_sender}'s timer expired",
            f"Find what delays the path at times, or {case.the_receiver}'s ACKs; raise a small rto_min of the route on "
            f"{case.the_sender}.",
        )
    if by_ack:
        return (
            "late ACKs or segments out of order looked like loss",
            f"Find what reorders packets. Keep timestamps and net.ipv4.tcp_recovery=1 on {case.the_sender}.",
        )
    return (
        "its ACKs came too late or not at all",
        f"Find where {case.the_receiver}'s ACKs are delayed or lost.",
    )


RULE = Rule(
    code="TW303",
    name="spurious-retransmissions",
    title="segments were retransmitted needlessly",
    severity=Severity.INFO,
    scope="direction",
    limits=("path_loss",),
    judge=judge,
    page=__doc__,
    when=(("retransmissions", ">=", "{segments}"),),
    thresholds={
        "segments": Threshold(3, "count", "A probe or two triggered by a delayed ACK are by design (RFC 8985 §7)."),
        "share": Threshold(0.01, "share", "Less than 1 % of the data segments costs neither bandwidth nor window."),
    },
)
