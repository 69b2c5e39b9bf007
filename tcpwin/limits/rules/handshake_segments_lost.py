"""## What it finds

A SYN or SYN/ACK was retransmitted before the connection was established.

## Why it matters

No round trip is known yet, so the first wait is a full second, then two more, then four (RFC 6298 §2.1 and §5.5, Linux
TCP_TIMEOUT_INIT). Users see a page that hangs for 1 s, 3 s or 7 s and is then fast.

## How it is judged

The connection was established after a SYN (or only the SYN/ACK) had been retransmitted. The cost is the time from the
first to the last of them, at least `cost_ns`. If the answer arrives less than half of the data's minimum round trip
after the last of them, it answers an earlier one: the path is slow and nothing was lost. The same holds for the ACK
that follows a repeated SYN/ACK. A SYN/ACK repeated after the handshake does not count.

## When it is wrong

Near the client, a SYN lost by the network and one ignored by the server (full listen queue, firewall) look the same. A
capture near the server shows whether it answered. Its `nstat` (`TcpExtListenOverflows`, `TcpExtListenDrops`) also shows
ignored SYNs.

## What to do

On the server: run `nstat -az TcpExtListenOverflows TcpExtListenDrops` and `ss -ltn` (Recv-Q is the queue, Send-Q its
limit); raise the application's backlog and `net.core.somaxconn`. Otherwise find where the path, a firewall or a full
connection table drops SYNs.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.analysis import Direction
from tcpwin.limits.case import Case
from tcpwin.limits.evidence.hosts import growth
from tcpwin.limits.evidence.loss import pairs, resent
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text, time_text

OVERFLOWS = ("TcpExtListenOverflows", "TcpExtListenDrops")
"""Counters for a full accept queue, and for SYNs dropped for any reason (net/ipv4/tcp_ipv4.c, tcp_input.c)."""


def judge(case: Case) -> Iterator[Finding]:
    fields = case.connection.fields
    established_ns, syn_ns, syn_ack_ns = fields["established_ns"], fields["syn_ns"], fields["syn_ack_ns"]
    if established_ns is None or syn_ack_ns is None:
        return
    is_syn = case.sender == "a"
    if is_syn and (syn_ns is None or _answers_an_earlier_one(case.data, syn_ack_ns - syn_ns)):
        return
    if case.back.syn_retransmissions and is_syn and _answers_an_earlier_one(case.back, established_ns - syn_ack_ns):
        return
    if not is_syn and case.back.syn_retransmissions:
        return
    # A SYN/ACK repeated after the handshake means that the ACK was lost behind the capture: the client does not wait.
    events = [each for each in resent(case, "syn" if is_syn else "syn_ack") if each.time_ns <= established_ns]
    cost_ns = sum(event.age_ns or 0 for event in events)
    if not events or cost_ns < case.settings["cost_ns"]:
        return
    if not is_syn and _answers_an_earlier_one(case.data, established_ns - events[-1].time_ns):
        return
    name = "SYN" if is_syn else "SYN/ACK"
    owner, where, confidence, ruled_out = _owner(case, is_syn=is_syn)
    yield case.finding(
        f"The handshake took {time_text(cost_ns)} longer: {case.the_sender} sent its {name} "
        f"{count_text(len(events) + 1, 'time')}, because {where}",
        owner=owner,
        side="b" if owner == "host" else None,
        confidence=confidence,
        cost_ns=cost_ns,
        evidence=Evidence(
            frames=tuple(dict.fromkeys((case.connection.first_frame, *pairs(events)))) if is_syn else pairs(events),
            start_ns=case.connection.start_ns,
            end_ns=established_ns,
            values={
                "sent_again": len(events),
                "waited_ns": cost_ns,
                "answer_after_ns": syn_ack_ns - syn_ns if is_syn else established_ns - events[-1].time_ns,
            },
            ruled_out=ruled_out,
        ),
        remedy=_remedy(owner),
    )


def _answers_an_earlier_one(data: Direction, answer_ns: int) -> bool:
    # Measure from the capture point to the answering side with data: a resent SYN or SYN/ACK is ambiguous.
    least_ns = data.rtt_min_ns
    return least_ns is not None and answer_ns < least_ns / 2


def _owner(case: Case, *, is_syn: bool) -> tuple[str, str, str, str]:
    overflows = _overflows(case)
    if is_syn and overflows:
        return (
            "host",
            "the server's listen queue was full",
            "likely",
            f"Not the path: the server counted {count_text(overflows, 'SYN')} dropped at its listen queue.",
        )
    if is_syn and case.back.syn_retransmissions:
        return (
            "network",
            "no ACK came back for the server's SYN/ACK: it or the ACK was lost on the path",
            "likely",
            "Not the server: it answered the first SYN and retransmitted its SYN/ACK.",
        )
    if is_syn and case.connection.vantage == "b":
        return (
            "host",
            "the server did not answer the first",
            "certain",
            "Not the path from the client: the SYNs were captured near the server. A firewall there may ignore them.",
        )
    if is_syn:
        return (
            "network",
            "the first was not answered: lost on the path, or dropped by the server's listen queue or a firewall",
            "likely",
            "Not a slow path: the last one was answered at once.",
        )
    return (
        "network",
        "no ACK answered the first: it or the ACK was lost on the path",
        "likely",
        "Not the server's listen queue: it answered the SYN.",
    )


def _overflows(case: Case) -> int:
    return max(growth(case.host("b"), *OVERFLOWS).values(), default=0)


def _remedy(owner: str) -> Remedy:
    if owner == "host":
        return Remedy(
            "Raise the backlog that the server's application gives to listen(), and its limit. Check `ss -ltn` and "
            "`nstat -az TcpExtListenOverflows TcpExtListenDrops` first.",
            settings=("sysctl -w net.core.somaxconn=4096",),
            side_effects="The application must call listen() again. More clients can then wait in the queue.",
        )
    return Remedy(
        "Find where SYNs are dropped: the path, a firewall, a full connection table, or the server's listen queue "
        "(`nstat -az TcpExtListenOverflows TcpExtListenDrops` there)."
    )


RULE = Rule(
    code="TW305",
    name="handshake-segments-lost",
    title="a SYN or SYN/ACK was retransmitted",
    severity=Severity.WARNING,
    scope="direction",
    limits=("handshake",),
    judge=judge,
    page=__doc__,
    when=(("syn_retransmissions", ">=", 1),),
    thresholds={
        "cost_ns": Threshold(500_000_000, "ns", "Half of the usual first timeout of 1 s; some systems wait less."),
    },
)
