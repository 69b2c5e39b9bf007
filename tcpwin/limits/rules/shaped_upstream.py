"""## What it finds

The path's bottleneck lies before the capture point: segments that the sender sent together arrive evenly spaced, at one
rate.

## Why it matters

Behind a shaper the flight never grows and no queue shows, so that the sender seems to have nothing to send. In fact
its data waits before the capture point. The path's rate is the limit, and neither host can change it.

## How it is judged

At least half of the gaps between new data segments take the same time per byte within 15 %; and either at least two in
five of these follow segments whose timestamps (RFC 7323) show that they were sent within a quarter of the gap, or the
delay since the timestamps varies by three gaps or more, as in a queue. It is judged only where the application seems to
hold the sender back for `application_ns` or more.

## When it is wrong

A host whose network card or driver paces segments after it stamped them looks the same to a capture behind it.

## What to do

Nothing at the hosts. If the rate should be higher, look for the shaper between the sender and the capture point.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.shaping import find_shaping
from tcpwin.limits.finding import Evidence, Finding, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import rate_text, time_text


def judge(case: Case) -> Iterator[Finding]:
    found = find_shaping(case)
    if found is None:
        return
    yield case.finding(
        f"The path carries {rate_text(found.rate_bps)} before the capture point: {found.even:,} of {found.gaps:,} gaps "
        f"between {case.the_sender}'s segments take the same time per byte, and the delay since their timestamps "
        f"varies by {time_text(found.lag_ns)}",
        owner="nobody",
        side=None,
        confidence="likely",
        cost_ns=min(case.data.budget_application_ns, found.even_ns),
        evidence=Evidence(
            frames=found.frames,
            values={
                "rate_bps": round(found.rate_bps),
                "even_gaps": found.even,
                "gaps": found.gaps,
                "sent_together": found.together,
                "lag_ns": found.lag_ns,
            },
            ruled_out="Not an application that paces its writes: the delay since the timestamps would not vary.",
        ),
    )


RULE = Rule(
    code="TW414",
    name="shaped-upstream",
    title="a bottleneck before the capture point spaces the segments",
    severity=Severity.INFO,
    scope="direction",
    limits=("path_rate",),
    judge=judge,
    page=__doc__,
    when=(("budget_application_ns", ">=", "{application_ns}"), ("data_segments", ">=", 60)),
    thresholds={"application_ns": Threshold(1e9, "ns", "Less is the usual gap between messages.")},
)
