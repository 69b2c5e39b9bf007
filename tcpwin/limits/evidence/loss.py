"""Helpers for rules on loss: the retransmitted segments, the cost of waiting for them, and who lost the originals.

In: a case. Out: its sender's events by cause, times, and the blame with its reason. It reads the capture again
only for events.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tcpwin.analysis import Direction, Event
from tcpwin.limits.case import Case
from tcpwin.limits.evidence.doubled import copied_after_ns
from tcpwin.limits.evidence.events import count_of, events_of
from tcpwin.limits.evidence.hosts import growth
from tcpwin.limits.evidence.refused import lost_unread
from tcpwin.limits.finding import Remedy, of_many
from tcpwin.limits.reader import is_tight
from tcpwin.limits.reading import count_originals, pairs_of
from tcpwin.units import count_text

RECEIVER_MEMORY = "receiver_memory"
PAIRS = 5
"""Originals with their retransmissions to list in the evidence: ten frames."""
REFUSALS = (
    "TcpExtTCPRcvQDrop",
    "TcpExtRcvPruned",
    "TcpExtTCPOFODrop",
    "TcpExtOfoPruned",
    "TcpExtTCPBacklogDrop",
)
"""Counters of segments that a host dropped after they had arrived (net/ipv4/tcp_input.c, tcp_ipv4.c)."""
TOO_OLD = "TcpExtPAWSEstab"
"""Counter of segments discarded for an old timestamp (RFC 7323 §5), originals too if a path reorders far enough."""
TOO_OLD_SHARE = 0.1
"""Share of the retransmitted segments; the counter belongs to the host, and other connections may have raised it."""
UNANSWERED = ("unacknowledged", "peer_silent")
"""Causes of final stalls in which nothing was acknowledged."""
REORDERED_SHARE = 0.01
REORDERED_ACKS = 30
"""Duplicate ACKs before any retransmission: after a loss a sender retransmits by the third."""

ARRIVED_SHARE = 0.9
"""Share of the retransmissions; for the rest, the copy that filled a hole may have been the first captured."""


class Culprit(NamedTuple):
    """The party that lost the segments.

    Attributes:
        owner: `network`, or `host` for the receiver's host.
        where: ends a sentence that begins with ``lost``.
        confidence: the highest confidence that a finding on this loss may have.
        ruled_out: why the next likeliest party is not to blame.
    """

    owner: str
    where: str
    confidence: str
    ruled_out: str

    @property
    def limits(self) -> tuple[str, ...]:
        """The limits of a finding on this loss; empty for the rule's."""
        return (RECEIVER_MEMORY,) if self.owner == "host" else ()


def busy_ns(case: Case) -> int:
    """Return the connection's duration without the pauses in which the direction had nothing to send; at least 0."""
    return max(case.connection.duration_ns - case.data.idle_ns, 0)


def share_of(case: Case, cost_ns: int) -> float:
    """Return a time as a share of `busy_ns`: at most 1, and 0 if that is 0."""
    whole_ns = busy_ns(case)
    return min(cost_ns / whole_ns, 1.0) if whole_ns else 0.0


def resent(case: Case, *causes: str) -> Sequence[Event]:
    """Return the sender's segments that were retransmitted for one of the causes, in time order. Reads the source.

    Empty if they are copies captured at a second point. Final segments that the peer never answered indicate its
    silence, not loss.
    """
    if copied_after_ns(case) is not None:
        return ()
    events = events_of(case, side=case.sender, causes=causes)
    start_ns = case.data.stall_at_end_start_ns
    if start_ns is None or case.data.stall_at_end not in UNANSWERED:
        return events
    return [event for event in events if event.time_ns < start_ns]


def wait_ns(case: Case, event: Event) -> int:
    """Return how long bytes waited for retransmission beyond the round trip that any repair takes; at least 0."""
    age_ns = event.age_ns if event.age_ns is not None else event.rto_ns
    return max((age_ns or 0) - round_trip_ns(case), 0)


def round_trip_ns(case: Case) -> int:
    """Return the sender's smoothed round trip, else the path's minimum, else 0."""
    data = case.data
    return data.sender_rtt_smoothed_ns or data.rtt_smoothed_ns or case.connection.path_rtt_ns or 0


def pairs(events: Sequence[Event]) -> tuple[int, ...]:
    """Return the frames of originals and their retransmissions for the first events given."""
    return pairs_of(events, PAIRS)


def pairs_shown(which: str, events: Sequence[Event]) -> str | None:
    """Describe which events `pairs` shows, if not all."""
    return of_many(which, min(len(events), PAIRS), len(events), "original and retransmission of the")


def needless(case: Case) -> int:
    """Count the retransmissions proved needless by DSACK, timestamps or F-RTO; two of them may count the same one."""
    data = case.data
    return data.spurious_by_dsack + data.spurious_by_timestamps + data.spurious_by_frto


def has_sack(case: Case) -> bool | None:
    """Whether both SYNs permit SACK (RFC 2018 §2); None if one was not captured."""
    if not (case.data.syn_seen and case.back.syn_seen):
        return None
    return case.data.syn_sack_permitted and case.back.syn_sack_permitted


def weaker(first: str, second: str) -> str:
    """Return the lower of two confidences."""
    return min(first, second, key=("possible", "likely", "certain").index)


def has_known_windows(data: Direction) -> bool:
    """Whether the windows of the data's receiver are known in bytes."""
    return data.window_scale.state not in ("unknown", "syn_only")


def memory_remedy(case: Case) -> Remedy:
    """Return the advice for a receiver that ran out of memory for data within its window."""
    return Remedy(
        f"Give {case.the_receiver} the memory that its window promises, or make its application read faster. Check "
        "`nstat` there (TcpExtTCPRcvQDrop, TcpExtRcvPruned).",
        side_effects="A larger net.ipv4.tcp_rmem costs memory for each connection that fills it.",
    )


def culprit(case: Case, events: Sequence[Event]) -> Culprit:
    """Distinguish loss on the path from a receiver that refuses segments.

    The receiver's counters decide. Without them, originals captured near the receiver count as arrived, and losses
    that met unread data (`lost_unread`) as refused. If the receiver's window was tight (`is_tight`), the question
    stays open.
    """
    receiver = case.the_receiver
    counted = _receiver_counters(case)
    too_old = counted.get(TOO_OLD, 0)
    data = case.data
    if too_old >= data.resent_segments / 2 > 0:
        return Culprit(
            "network",
            f"at {receiver}, which discarded them as too old (PAWS): the path reorders",
            "likely",
            f"Not loss on the path: {receiver} counted {count_text(too_old, 'segment')} with an outdated timestamp.",
        )
    refused = sum(counted.get(name, 0) for name in REFUSALS) if counted else 0
    if refused:
        return Culprit(
            "host",
            f"at {receiver}, which ran out of memory for them",
            "likely",
            f"Not the path: {receiver} counted {refused:,} segments or queues dropped after they arrived.",
        )
    arrived = count_originals(events) if data.view == "receiver" else 0
    if arrived > ARRIVED_SHARE * len(events):
        by_timer = any(event.cause in ("rto", "tail_loss_probe") for event in events)
        return Culprit(
            "host",
            f"at {receiver}, which refused them, "
            + ("or their ACKs on the way back" if by_timer else "by its own ACKs"),
            "likely",
            f"Not the path to {receiver}: {arrived:,} of {len(events):,} originals were captured near it.",
        )
    if (unread := lost_unread(case)) is not None:
        return Culprit(
            "host",
            f"at {receiver}, which ran out of memory for them",
            "likely",
            f"Not the path: {unread.text}.",
        )
    if is_tight(data, busy_ns(case)):
        return Culprit(
            "network",
            f"on the path, or refused by {receiver}, whose receive window was nearly full at times",
            "possible",
            f"Not ruled out: {receiver} may drop data when its memory is full; `nstat` there would show it.",
        )
    if not has_known_windows(case.data):
        return Culprit(
            "network",
            "on the path",
            "likely",
            f"Not ruled out: {receiver}'s memory; without the window scale a full window does not show.",
        )
    if reorders(case):
        return Culprit(
            "network",
            f"on the path, or too late for {receiver} (PAWS), because the path reorders",
            "likely",
            f"Not {receiver}'s memory: its receive window had space.",
        )
    return Culprit(
        "network",
        "on the path",
        "certain" if data.view == "sender" else "likely",
        f"Not {receiver}'s memory: its receive window had space.",
    )


def reorders(case: Case) -> bool:
    """Whether the path seems to reorder: late segments, segments too old for the receiver, or many duplicate ACKs.

    Reads the source.
    """
    data = case.data
    if data.out_of_order >= max(REORDERED_SHARE * data.data_segments, 1):
        return True
    too_old = _receiver_counters(case).get(TOO_OLD, 0)
    if too_old >= max(TOO_OLD_SHARE * data.resent_segments, 1):
        return True
    # Without the total count no list is needed.
    if data.duplicate_acks < REORDERED_ACKS or count_of(case, "duplicate_ack", case.receiver) < REORDERED_ACKS:
        return False
    acks = 0
    for event in events_of(case):
        if event.direction == case.sender and event.cause:
            return False
        acks += event.direction == case.receiver and "duplicate_ack" in event.names
        if acks >= REORDERED_ACKS:
            return True
    return False


def _receiver_counters(case: Case) -> dict[str, int]:
    """Return how much the counters of the receiver's host grew in total; empty without them."""
    return growth(case.host(case.receiver), *REFUSALS, TOO_OLD) if case.analysis.hosts else {}
