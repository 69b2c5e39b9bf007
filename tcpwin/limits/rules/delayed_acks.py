"""## What it finds

The sender had more to send, but only one segment fitted its window or buffer, so it repeatedly waited for the
receiver's delayed ACK.

## Why it matters

A receiver acknowledges every second full segment at once, but a single segment only after 40 ms (Linux) to 200 ms (RFC
9293 §3.8.6.3, RFC 5681 §4.2). When a window or send buffer allows only one segment in flight, the transfer stalls for
that time in every round. Small devices with a buffer of one segment are known for this.

## How it is judged

Near the sender, the rule counts delayed ACKs (`delayed_acks`) that left nothing in flight and were followed by new data
within 2 ms. One of the two segments must be full, which rules out Nagle's algorithm (TW405). The cost is how much later
these ACKs came than the fastest one. There are at least `waits` of them, and the cost is at least `cost_ns` and at
least `share` of the connection without its pauses. Large captures, whose segments are not read a second time, are not
checked.

## When it is wrong

An application that happens to write just as the ACK arrives looks the same, but this rarely happens several times.

## What to do

Find what keeps the data in flight so small (receive window, send buffer, or congestion window after timeouts) and raise
it. On the receiver, a route with `quickack 1`, or TCP_QUICKACK, removes the delay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.capture import table_of
from tcpwin.limits.evidence.loss import share_of
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity, of_many
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text, share_text, time_text

AT_ONCE_NS = 2_000_000
"""A sender that was waiting for an ACK sends within this time after it."""
SHOWN = 4


def judge(case: Case) -> Iterator[Finding]:
    if not case.may_read:
        return
    waits = _waits(case)
    least_ns = case.data.rtt_min_ns or 0
    cost_ns = sum(max(rtt_ns - least_ns, 0) for rtt_ns in waits.rtts_ns)
    share = share_of(case, cost_ns)
    if (
        len(waits.rtts_ns) < case.settings["waits"]
        or cost_ns < case.settings["cost_ns"]
        or share < case.settings["share"]
    ):
        return
    yield case.finding(
        f"{case.the_sender} waited {time_text(cost_ns)} ({share_text(share)} of the connection without its pauses) for "
        f"{case.the_receiver}'s delayed ACKs: a segment was alone in flight {count_text(len(waits.rtts_ns), 'time')}",
        owner="host",
        side=case.sender,
        confidence="likely",
        cost_ns=cost_ns,
        evidence=Evidence(
            frames=waits.frames,
            start_ns=waits.start_ns,
            end_ns=waits.end_ns,
            values={
                "waits": len(waits.rtts_ns),
                "waited_ns": cost_ns,
                "delayed_acks": case.data.delayed_acks,
                "rtt_min_ns": least_ns,
            },
            ruled_out=(
                "Not the application: its data left with the ACK. Not Nagle's algorithm: full segments do not wait."
            ),
            frames_of=of_many("first", min(len(waits.rtts_ns), SHOWN), len(waits.rtts_ns)),
        ),
        remedy=Remedy(
            f"Allow {case.the_sender} more data in flight: raise the receive window, send buffer or congestion window, "
            f"whichever limits it. Or set quickack on {case.the_receiver}.",
            settings=("ip route change <route> quickack 1",),
            side_effects="Every segment is acknowledged: more packets on the return path.",
        ),
    )


class Waits(NamedTuple):
    """Waits of a single segment in flight for its delayed ACK, each followed at once by more data.

    Attributes:
        rtts_ns: round trip of each such ACK.
        start_ns, end_ns: start of the first wait and end of the last.
        frames: segment, ACK and following data of the first few waits.
    """

    rtts_ns: Sequence[int] = ()
    start_ns: int = 0
    end_ns: int = 0
    frames: tuple[int, ...] = ()


def _waits(case: Case) -> Waits:
    table = table_of(case)
    if table is None:
        return Waits()
    # Already imported by the reader of the columns.
    import numpy as np

    directions, lengths, times_ns = table["direction"], table["length"], table["time_ns"]
    sent = np.flatnonzero((directions == case.sender) & (lengths > 0))
    answers = np.flatnonzero(directions == case.receiver)
    if len(sent) < 2 or not len(answers):
        return Waits()
    before, after = sent[:-1], sent[1:]
    # The last ACK between the two segments.
    acks = answers[np.maximum(np.searchsorted(answers, after) - 1, 0)]
    ends = table["seq"][before] + lengths[before].astype(np.uint32)
    is_wait = (
        (acks > before)
        & (acks < after)
        & (table["ack"][acks] == ends)
        & ~np.ma.getmaskarray(table["rtt_ns"])[acks]
        & (np.maximum(lengths[before], lengths[after]) >= (case.data.mss_bytes or 0))
        & (times_ns[after] - times_ns[acks] <= AT_ONCE_NS)
    )
    is_wait[is_wait] = ["delayed_ack" in events.split("|") for events in table["events"][acks[is_wait]]]
    before, acks, after = before[is_wait], acks[is_wait], after[is_wait]
    if not len(acks):
        return Waits()
    shown = np.stack((before, acks, after), axis=1)[:SHOWN].ravel()
    return Waits(
        rtts_ns=np.ma.getdata(table["rtt_ns"])[acks].tolist(),
        start_ns=int(times_ns[before[0]]),
        end_ns=int(times_ns[after[-1]]),
        frames=tuple(table["frame"][shown].tolist()),
    )


RULE = Rule(
    code="TW408",
    name="delayed-acks",
    title="the sender waited for delayed ACKs",
    severity=Severity.WARNING,
    scope="direction",
    limits=("delayed_ack",),
    judge=judge,
    page=__doc__,
    when=(("delayed_acks", ">=", "{waits}"), ("view", "==", "sender")),
    thresholds={
        "waits": Threshold(3, "count", "An application may write just as the ACK arrives once or twice."),
        "cost_ns": Threshold(100_000_000, "ns", "Two or three delayed ACKs: people notice about a tenth of a second."),
        "share": Threshold(0.02, "share", "Less than 2 % of a connection without its pauses is barely noticeable."),
    },
)
