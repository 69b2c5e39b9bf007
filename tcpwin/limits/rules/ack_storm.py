"""## What it finds

Two hosts that answer each other's bare ACKs without end, because they disagree about the sequence numbers.

## Why it matters

Each ACK outside the other's window is answered by an ACK (RFC 9293 §3.10.7.4), so that one pair of packets keeps both
hosts and the path busy, often for hours. No data passes.

## How it is judged

At least `segments` segments without data were captured, `rate` or more per second; nine of ten of each side carry the
same sequence and acknowledgment numbers; and what one side acknowledges is not what the other sends.

## When it is wrong

Keep-alives also repeat the same numbers, but seconds apart.

## What to do

Close the connection at both ends. Find what brought them out of step: a NAT or firewall that reused the ports, a host
that restarted or was restored from a snapshot, or a client that reuses its port (NFS) while the server still has the
old connection. On Linux, `net.ipv4.tcp_invalid_ratelimit` slows such storms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.packets import SPACE, Packets, packets_of
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import time_text

SAME = 0.9
IN_STEP_BYTES = 1
"""A keep-alive is one byte behind."""
FRAMES = 4


def judge(case: Case) -> Iterator[Finding]:
    connection = case.connection
    packets = packets_of(case) if case.direction == "a_to_b" else None
    if packets is None or not connection.duration_ns:
        return
    count = len(packets)
    if (packets["length"] > 0).any() or count < case.settings["segments"]:
        return
    if count * 1e9 / connection.duration_ns < case.settings["rate"]:
        return
    common_a, common_b = _common(packets.sent_by("a")), _common(packets.sent_by("b"))
    if common_a is None or common_b is None:
        return
    (seq_a, ack_a), (seq_b, ack_b) = common_a, common_b
    apart = max(min((one - other) % SPACE, (other - one) % SPACE) for one, other in ((ack_b, seq_a), (ack_a, seq_b)))
    if apart <= IN_STEP_BYTES:
        return
    yield case.finding(
        f"{count:,} bare ACKs in {time_text(connection.duration_ns)}: {case.the('a')} and {case.the('b')} are out of "
        f"step ({apart:,} bytes apart) and answer each other's ACKs without end",
        owner="network",
        side=None,
        confidence="likely",
        cost_ns=connection.duration_ns,
        evidence=Evidence(
            frames=tuple(map(int, packets["frame"][:FRAMES])),
            start_ns=connection.start_ns,
            end_ns=connection.end_ns,
            values={"segments": count, "apart_bytes": apart},
            ruled_out="Not keep-alives, which are seconds apart; not a slow reader: no data waits.",
        ),
        remedy=Remedy(
            "Close the connection at both ends. Find what brought them out of step: a NAT or firewall that reused the "
            "ports, or a host that restarted and uses the same port again."
        ),
    )


def _common(packets: Packets) -> tuple[int, int] | None:
    """Return the sequence and acknowledgment numbers of nearly all segments, or None."""
    numbers = Counter(zip(packets["seq"].tolist(), packets["ack"].tolist(), strict=True)).most_common(1)
    return numbers[0][0] if numbers and numbers[0][1] >= SAME * len(packets) else None


RULE = Rule(
    code="TW510",
    name="ack-storm",
    title="two hosts answer each other's ACKs without end",
    severity=Severity.ERROR,
    scope="direction",
    limits=("middlebox",),
    judge=judge,
    page=__doc__,
    when=(("segments", ">=", 50), ("data_segments", "==", 0)),
    thresholds={
        "segments": Threshold(100, "count", "Fewer may be duplicate ACKs of a burst that the capture lacks."),
        "rate": Threshold(50, "times", "Per second: keep-alives come at intervals of seconds."),
    },
)
