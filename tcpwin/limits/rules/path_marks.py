"""## What it finds

The path marks segments instead of dropping them (explicit congestion notification, RFC 3168): it asked the sender to
slow down, without losing data.

## Why it matters

Each mark replaces a loss. A transfer that slows down repeatedly without loss looks as if nothing were wrong on the
path; the marks show that a queue there has reached the length that its manager allows.

## How it is judged

Both SYNs negotiated ECN (`ecn`), and the receiver's ACKs reported marks (`ece_acks`). Their number appears in the IP
header (`ce_segments`, downstream of the router that marks) or in CWR, with which the sender confirms that it slowed
down (`cwr_segments`): at least `marks` of either. With AccECN (RFC 9768) these flags form a counter, and the rule is
silent.

## When it is wrong

The marks themselves are read from the packets and certain. Some middleboxes clear them or set them on all traffic; in
the latter case every segment is marked, and the sender crawls although there is no queue (`queue_mean_ns` is close to
zero).

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
        seen = f"{case.the_sender} slowed down {count_text(data.cwr_segments, 'time')} without loss"
    else:
        seen = f"{count_text(data.ce_segments, 'segment')} arrived marked"
    yield case.finding(
        f"The path marks congestion instead of dropping: {seen}",
        owner="network",
        confidence="certain",
        evidence=Evidence(
            values={name: getattr(data, name) for name in ("ce_segments", "ece_acks", "cwr_segments")},
            ruled_out="Not loss: a mark asks for less before anything is dropped.",
        ),
        remedy=Remedy(
            "Nothing to change at the hosts. To carry more, look at the rate and target of the queue that marks.",
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
    thresholds={"marks": Threshold(2, "count", "One may be momentary; a second shows that it continues.")},
)
