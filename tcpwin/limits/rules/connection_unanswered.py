"""## What it finds

SYNs to a port were never answered, neither with a SYN/ACK nor with a RST.

## Why it matters

The application waits for seconds to minutes before it gives up: by default Linux retransmits a SYN six times, after 1,
2, 4 s and so on (RFC 6298; `net.ipv4.tcp_syn_retries`).

## How it is judged

For at least `connections` to the same address and port only SYNs were captured, and each SYN was retransmitted or had
`wait_ns` to be answered before the capture ended. The cost is the time from the first to the last SYN of each
connection.

## When it is wrong

A capture of one direction only (TW604) lacks the answers; the finding is then `possible`. A full listen queue on Linux
also drops SYNs; then other connections to the same port are answered.

## What to do

Check that the host is up. Then look for a firewall that drops instead of rejecting, and for a full listen queue.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.capture import FRAMES
from tcpwin.limits.evidence.ports import attempts
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text, time_text


def judge(case: Case) -> Iterator[Finding]:
    capture = case.analysis.capture
    end_ns = capture.last_time_ns or 0
    for each in attempts(case, case.settings["connections"]):
        # A capture of one direction may hold only the SYN/ACK: an answer whose question was not captured.
        asked = [connection for connection in each.connections if connection.fields["syn_ns"] is not None]
        waited = [
            connection
            for connection in asked
            if connection.a_to_b.syn_retransmissions or end_ns - connection.start_ns >= case.settings["wait_ns"]
        ]
        if not waited or len(waited) < case.settings["connections"]:
            continue
        again = sum(connection.a_to_b.syn_retransmissions for connection in waited)
        cost_ns = sum(connection.duration_ns for connection in waited)
        others = f"; {count_text(each.accepted, 'other was', 'others were')} answered" if each.accepted else ""
        waits = (
            f"{count_text(again, 'SYN')} sent again, {time_text(cost_ns)} total"
            if again
            else f"no answer within {time_text(case.settings['wait_ns'])}"
        )
        yield case.finding(
            f"{each.port} did not answer {count_text(len(waited), 'connection')}{others}: {waits}",
            owner="host" if each.accepted else "network",
            side="b",
            confidence="possible" if capture.connections_one_way or each.accepted else "likely",
            cost_ns=cost_ns,
            evidence=Evidence(
                frames=tuple(connection.first_frame for connection in waited[:FRAMES]),
                start_ns=waited[0].start_ns,
                end_ns=max(connection.end_ns for connection in waited),
                values={
                    "port": str(each.port),
                    "unanswered": len(waited),
                    "accepted": each.accepted,
                    "syn_retransmissions": again,
                    "quoted_in_icmp": capture.quoted_in_icmp,
                },
                ruled_out="Not a closed port: the host would have answered with a RST.",
            ),
            remedy=Remedy(
                f"Check that {each.port.address} is up, that no firewall drops SYNs to port {each.port.port}, and that "
                "its listen queue does not overflow.",
                settings=("nstat -az TcpExtListenOverflows TcpExtListenDrops",),
            ),
        )


RULE = Rule(
    code="TW503",
    name="connection-unanswered",
    title="SYNs that nobody answered",
    severity=Severity.WARNING,
    scope="capture",
    asks=(("connection", (("close", "==", "unanswered"),)),),
    limits=("handshake",),
    judge=judge,
    page=__doc__,
    thresholds={
        "connections": Threshold(1, "count", "One application that waits for minutes is enough."),
        "wait_ns": Threshold(1_000_000_000, "ns", "The first retransmission timeout of a SYN (RFC 6298 section 2)."),
    },
)
