"""## What it finds

The receiver's ACKs are lost on their way back to the sender.

## Why it matters

ACKs are cumulative, so a lost ACK costs no data. But ACKs clock the sender: when many are missing, it sends in bursts,
opens its congestion window more slowly, and mistakes the loss of a final ACK for the loss of data.

## How it is judged

Linux numbers the packets of a connection in the IP identification field. Gaps in the numbers of bare ACKs are ACKs that
never reached the capture point (`acks_missing`). The rule reports at least `acks` missing ACKs that make up at least
`share` of the segments the receiver sent. It does not apply near the receiver, where the ACKs have not yet crossed the
path, or when the capture itself lost data.

## When it is wrong

A capture that drops packets drops ACKs too; the rule is silent when data is missing (`missed_bytes`). IPv6 and some
operating systems do not number packets this way, so the rule finds nothing there.

## What to do

Find the loss on the return path: a slow uplink with a full queue (an upload during the download), an asymmetric link,
or a filter. Give ACKs a separate queue (`fq_codel`, `cake` with `ack-filter`).
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import share_text


def judge(case: Case) -> Iterator[Finding]:
    data = case.data
    missing = data.acks_missing or 0
    sent = missing + case.back.segments
    if data.view not in ("sender", "between") or missing < case.settings["share"] * sent:
        return
    yield case.finding(
        f"{share_text(missing / sent, places=1)} of {case.the_receiver}'s ACKs ({missing:,}) were lost on the return "
        f"path, so {case.the_sender} sends in bursts",
        owner="network",
        confidence="likely",
        evidence=Evidence(
            values={
                "acks_missing": missing,
                "segments_back": case.back.segments,
                "stretch_acks_after_loss": data.stretch_acks_after_loss or 0,
            },
            ruled_out="Not loss in the capture: no data is missing. Not merged ACKs (offload): no number is skipped.",
        ),
        remedy=Remedy(
            f"Find where {case.the_receiver}'s packets are lost. Look at a full uplink queue first.",
            settings=("tc qdisc replace dev <uplink> root fq_codel",),
            side_effects="fq_codel shares the uplink between connections: bulk uploads wait behind ACKs.",
        ),
    )


RULE = Rule(
    code="TW310",
    name="acks-lost",
    title="ACKs were lost on the return path",
    severity=Severity.INFO,
    scope="direction",
    limits=("path_loss",),
    judge=judge,
    page=__doc__,
    when=(("acks_missing", ">=", "{acks}"), ("missed_bytes", "==", 0)),
    thresholds={
        "acks": Threshold(10, "count", "Fewer may be lost in a single burst."),
        "share": Threshold(
            0.03, "share", "TCP itself halves the number of ACKs; 3 % more is where a sender begins to notice."
        ),
    },
)
