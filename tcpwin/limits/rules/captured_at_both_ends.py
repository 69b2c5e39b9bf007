"""## What it finds

The capture contains a connection twice: as it left one end and as it arrived at the other.

## Why it matters

The second copy of each packet looks like a retransmission. Loss, bytes in flight and round trips cannot be judged from
such a mixture, so the rules on loss skip this connection.

## How it is judged

Both SYNs reappear sooner than any stack would retransmit them: a SYN waits one second for its answer (RFC 6298 §2.1),
and both would have to be lost. In addition, at least ten segments, and at least 40 % of the direction's data, appear to
be retransmitted, since half of all segments are copies.

## When it is wrong

A capture near a loop, or on a bond that duplicates packets, looks the same and cannot be judged either. The rule does
not recognise a connection whose SYNs were not captured, or were modified by a middlebox between the two points; its
copies are then reported as retransmissions.

## What to do

`tcpwin pair FILE` splits the capture by vantage point and reports what was lost in between. Or analyse each original
capture separately, without merging them.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.doubled import FEWEST_SEGMENTS, copied_after_ns, pair_command
from tcpwin.limits.evidence.events import events_of
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule
from tcpwin.units import time_text


def judge(case: Case) -> Iterator[Finding]:
    after_ns = copied_after_ns(case)
    if after_ns is None:
        return
    data, connection = case.data, case.connection
    pairs = [(event.original_frame, event.frame) for event in events_of(case, "syn_retransmission")]
    yield case.finding(
        f"The capture holds this connection twice (both SYNs again within {time_text(after_ns)}): captures of two "
        f"points were merged. The {data.retransmissions:,} apparent retransmissions of {case.the_sender} are copies: "
        "loss and bytes in flight cannot be determined",
        owner="nobody",
        confidence="certain",
        evidence=Evidence(
            frames=tuple(dict.fromkeys(frame for pair in pairs for frame in pair if frame)),
            start_ns=connection.start_ns,
            end_ns=connection.end_ns,
            values={
                "copied_after_ns": after_ns,
                "retransmissions": data.retransmissions,
                "data_segments": data.data_segments,
                "weakens": "TW1, TW2, TW3, TW4",
            },
            ruled_out="Not loss: no stack retransmits a SYN so soon, and both SYNs would have to be lost.",
        ),
        remedy=Remedy(
            "Split the capture by vantage point and pair the parts: that shows what was lost in between.",
            settings=(pair_command(case),),
        ),
    )


RULE = Rule(
    code="TW610",
    name="captured-at-both-ends",
    title="a connection was captured at two points",
    severity=Severity.WARNING,
    scope="direction",
    judge=judge,
    page=__doc__,
    when=(("syn_retransmissions", ">=", 1), ("data_segments", ">=", FEWEST_SEGMENTS)),
)
