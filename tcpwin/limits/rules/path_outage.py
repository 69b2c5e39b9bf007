"""## What it finds

For a time, nothing that a side sent arrived; then the path recovered.

## Why it matters

The transfer stalls during the outage, and longer: the sender's timer doubles with each try, so that it notices the
recovery late. Failovers, routing changes, roaming between radio cells and flapping links do this.

## How it is judged

All segments that the sender sent for at least a second were lost, of any size, at three or more different times, and
the next segment arrived. Several outages of a path that also loses more than 2 % of all other segments are bursts of
the same loss, and are not reported. Path MTU problems (TW312), which end when the sender sends less, are excluded. If
packets of the other side were captured meanwhile, that direction worked; otherwise both may have been down. The cost is
the time from the first lost segment to the first that arrived.

## When it is wrong

A receiver that was asleep or stopped, or a firewall that blocked the connection for a while, looks the same. So does a
receiver without memory (TW211): if a quarter of its window or more was unread data before each outage, the finding is
only possible, and if the receiver's counters show that its kernel dropped data, it is TW211.

## What to do

Look at what happened on the path at that time: logs of routers, access points and failover software, and interface
counters. On Linux 6.15 and later, a smaller `net.ipv4.tcp_rto_max_ms` makes senders notice the recovery sooner.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.outages import UNREAD, Outage, find_outages, span_text
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity, of_many
from tcpwin.limits.rule import Rule
from tcpwin.units import count_text, share_text, time_text


def judge(case: Case) -> Iterator[Finding]:
    outages = find_outages(case)
    if not outages:
        return
    longest = max(outages, key=lambda each: each.duration_ns)
    when = span_text(case, longest.start_ns, longest.end_ns)
    cost_ns = sum(each.duration_ns for each in outages)
    is_doubtful = all(each.unread_share >= UNREAD for each in outages)
    ruled_out = "Not loss by chance: everything sent at several times was lost, and nothing afterwards."
    look = "Look"
    if is_doubtful:
        look = f"Check `nstat` on {case.the_receiver} (TcpExtTCPRcvQDrop). If it dropped nothing, look"
        ruled_out += (
            f" Not ruled out: {case.the_receiver} ran out of memory, as its application had left data unread each time "
            f"({share_text(longest.unread_share)} of its largest window before the longest)."
        )
    yield case.finding(
        _text(case, outages, longest, is_doubtful),
        owner="network",
        side=None,
        confidence="possible" if is_doubtful else "likely",
        cost_ns=cost_ns,
        evidence=Evidence(
            frames=longest.frames,
            start_ns=longest.start_ns,
            end_ns=longest.end_ns,
            values={
                "outages": len(outages),
                "longest_ns": longest.duration_ns,
                "lost": longest.lost,
                "tries": longest.tries,
                "heard_meanwhile": longest.heard,
            },
            ruled_out=ruled_out,
            frames_of=of_many("longest", 1, len(outages)),
            span_of=of_many("longest", 1, len(outages)),
        ),
        remedy=Remedy(
            f"{look} at what happened on the path {when}: failover, routing change, roaming, a flapping link. The "
            f"doubling timer of {case.the_sender} adds to it; on Linux 6.15 and later a smaller tcp_rto_max_ms limits "
            "that.",
            settings=("sysctl -w net.ipv4.tcp_rto_max_ms=5000",),
            side_effects="More retransmissions while a path is down, for all connections of the host.",
        ),
    )


def _text(case: Case, outages: tuple[Outage, ...], longest: Outage, is_doubtful: bool) -> str:
    when = span_text(case, longest.start_ns, longest.end_ns)
    times = "" if len(outages) == 1 else f" ({count_text(len(outages), 'outage')}, this is the longest)"
    if longest.heard:
        where = f"from {case.the_sender} to {case.the_receiver}, while {case.the_receiver}'s packets arrived"
    else:
        where = f"in both directions, or only from {case.the_sender} to {case.the_receiver}"
    what = f"The path was down, or {case.the_receiver} refused all data," if is_doubtful else "The path was down"
    return (
        f"{what} for {time_text(longest.duration_ns)} {where}: all {longest.lost:,} segments sent "
        f"{when} were lost, at {longest.tries} different times, and then it recovered{times}"
    )


RULE = Rule(
    code="TW313",
    name="path-outage",
    title="nothing arrived for a time",
    severity=Severity.WARNING,
    scope="direction",
    limits=("path_outage",),
    judge=judge,
    page=__doc__,
    when=(("rto_retransmissions", ">=", 2), ("connection.duration_ns", ">=", 1e9)),
    yields_to=("TW312",),
)
