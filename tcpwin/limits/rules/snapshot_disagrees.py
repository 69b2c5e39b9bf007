"""## What it finds

A host's kernel reports socket values that the packets of that time contradict.

## Why it matters

One of them is wrong: the capture lost packets, the clocks differ, or the snapshot belongs to another connection.
Findings on this connection that need both have lower confidence.

## How it is judged

The kernel's window (`snd_wnd`) and its acknowledged and received bytes are compared with the packets, over the whole
interval in which the socket may have been read. At least `samples` of the compared samples, and at least `share` of
them, do not fit. At most eight connections per capture are compared, those with the most samples.

## When it is wrong

The capture may contain a segment that the kernel refused. If a middlebox terminates TCP between the capture point and
the host (a proxy), its other side has different numbers.

## What to do

Check TW601 and TW608 first. Then compare the snapshot's addresses and times with the capture's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tcpwin.errors import TcpwinError
from tcpwin.limits.case import Case
from tcpwin.limits.evidence.capture import READ_CONNECTIONS, READ_PACKETS
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.roles import the_end
from tcpwin.limits.rule import Rule, Threshold

if TYPE_CHECKING:
    from tcpwin.hosts import JoinedSample
    from tcpwin.limits.connection import Connection


def judge(case: Case) -> Iterator[Finding]:
    counts: Counter[int] = Counter()
    for host in case.analysis.hosts:
        counts.update({match.connection: len(samples) for match, samples in host.found.items()})
    # Each connection costs a pass over the capture.
    most = max(1, min(READ_CONNECTIONS, READ_PACKETS // max(case.analysis.capture.packets, 1)))
    for id, _ in counts.most_common(most):
        connection = case.analysis.connections[id]
        try:
            joined = connection.snapshots
        except TcpwinError:
            return
        for side in ("a", "b"):
            mine = [each for each in joined if each.side == side and _is_compared(each)]
            wrong = [each for each in mine if each.disagreements]
            if len(wrong) >= case.settings["samples"] and len(wrong) >= case.settings["share"] * len(mine):
                yield _finding(case, connection, side, mine, wrong)


def _is_compared(each: JoinedSample) -> bool:
    return any(seen is not None for seen in (each.peer_window_bytes, each.acked_bytes, each.received_bytes))


def _finding(
    case: Case, connection: Connection, side: str, compared: list[JoinedSample], wrong: list[JoinedSample]
) -> Finding:
    names = Counter(disagreement.name for each in wrong for disagreement in each.disagreements)
    worst = ", ".join(f"{name} in {count:,}" for name, count in names.most_common())
    first = wrong[0].disagreements[0]
    found = case.finding(
        f"{len(wrong):,} of {len(compared):,} samples of {the_end(connection, side)}'s socket contradict the packets "
        f"of their time: {worst}",
        owner="nobody",
        side=side,
        confidence="certain",
        evidence=Evidence(
            start_ns=wrong[0].time_ns,
            end_ns=wrong[-1].time_ns,
            values={
                "compared": len(compared),
                "disagreeing": len(wrong),
                **{f"disagreeing_{name}": count for name, count in names.items()},
                "first_name": first.name,
                "first_kernel": first.kernel,
                "first_packets_min": first.packets.least,
                "first_packets_max": first.packets.most,
                "weakens": "TW2, TW4",
            },
            ruled_out=(
                "Not a sample read between two packets: the check covers the whole interval in which it may have "
                "been read."
            ),
        ),
        remedy=Remedy("Compare the snapshot's addresses and times with the capture's; see TW601 and TW608 first."),
    )
    return replace(found, connection=connection.id)


RULE = Rule(
    code="TW609",
    name="snapshot-disagrees",
    title="a kernel's numbers contradict the packets",
    severity=Severity.WARNING,
    scope="capture",
    judge=judge,
    page=__doc__,
    needs_hosts=True,
    thresholds={
        "samples": Threshold(3, "count", "One or two samples may be read while a segment passes through the host."),
        "share": Threshold(0.02, "share", "Even in a long run, fewer samples are read at such moments."),
    },
)
