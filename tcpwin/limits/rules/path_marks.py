"""## What it finds

The path marks segments instead of dropping them (explicit congestion notification, RFC 3168): it asked the sender to
slow down, and no data was lost for it.

## Why it matters

A mark stands where a loss would have been. A transfer that slows down again and again without a loss looks as if
nothing was wrong on the path; the marks say that a queue there is as long as its manager lets it grow.

## How it is judged

Both SYNs agreed on ECN (`ecn`), and the receiver's ACKs told of marks (`ece_acks`). How many there were shows in the IP
header (`ce_segments`, behind the router that marks), or in CWR, with which the sender says that it has slowed down
(`cwr_segments`): at least `marks` of either. With AccECN (RFC 9768) the flags are a counter, and the rule is silent.

## When it is wrong

Never about the marks: they are read off the packets. Some middleboxes clear them, or set them for all traffic; then
every segment is marked, and the sender crawls without a queue (`queue_mean_ns` is next to nothing).

## What to do

Nothing at the hosts: it works as designed. To carry more, look at the queue that marks: its rate, and its target (`tc
-s qdisc` shows `ecn_mark`).
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text


def judge(case: Case) -> Iterator[Finding]:
    data = case.data
    if max(data.ce_segments, data.cwr_segments) < case.settings["marks"]:
        return
    if data.cwr_segments:
        seen = f"{case.the_sender} slowed down {count_text(data.cwr_segments, 'time')} without a loss"
    else:
        seen = f"{count_text(data.ce_segments, 'segment')} came marked"
    yield case.finding(
        f"The path marks congestion instead of dropping: {seen}",
        owner="network",
        confidence="certain",
        evidence=Evidence(
            values={name: getattr(data, name) for name in ("ce_segments", "ece_acks", "cwr_segments")},
            ruled_out="Not loss: a mark asks for less before anything is dropped.",
        ),
        remedy=Remedy(
            "Nothing to change at the hosts. To carry more, look at the rate and the target of the queue that marks.",
            settings=("tc -s qdisc show dev <uplink>",),
        ),
    )


RULE = Rule(
    code="TW311",
    name="path-marks",
    title="The path marked congestion (ECN)",
    severity=Severity.INFO,
    scope="direction",
    limits=("path_rate",),
    judge=judge,
    page=__doc__,
    when=(("ece_acks", ">=", 1),),
    thresholds={"marks": Threshold(2, "count", "One may be a moment's; a second says that it goes on.")},
)
