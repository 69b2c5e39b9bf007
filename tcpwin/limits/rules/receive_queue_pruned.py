"""## What it finds

The receiver's kernel dropped packets that had arrived, for lack of receive memory.

## Why it matters

The data was within the window and had crossed the path, and must now be retransmitted. The sender interprets the drop
as congestion and slows down, although nothing was dropped in the network.

## How it is judged

The sum of the host's counters TcpExtTCPRcvQDrop, TcpExtTCPOFODrop, TcpExtRcvPruned and TcpExtOfoPruned grew by at least
`dropped` while it was watched (`nstat`). The counters belong to the host; if only one connection in the capture brought
it data, the finding names that connection. If the count is at least 1 % of its retransmitted segments, what TW211
leaves of the time lost to losses is the receiver's.

Cloudflare's oscillating reader (2022; 1 Gbit/s, 300 ms, one minute) produced these counts, by the memory that the
setting assumes per byte of payload:

| tcp_rmem MiB / scale | reckoned | stock 5.15: pruned, collapsed | collapsing limited: QDrop, OFODrop |
|---|---|---|---|
| 512 / -2 | 4 | 0, 0 | 0, 0 |
| 256 / 1 | 2 | 0, 0 | 0, 0 |
| 170 / 2 | 1.33 | 24, 490 K | 9, 86 |
| 146 / 3 | 1.14 | 57, 616 K | 7, 1550 |
| 137 / 4 | 1.07 | 74, 803 K | 10, 3020 |

## When it is wrong

Another connection of the host, not in the capture, may have caused it.

## What to do

Let the kernel assume more memory per byte of payload, so that the window ends before the memory does: before Linux 6.6
a smaller `net.ipv4.tcp_adv_win_scale` with a larger `net.ipv4.tcp_rmem`. Also make the application read.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.dropped import DROPPED, PUBLISHED, short_of_memory
from tcpwin.limits.evidence.hosts import growth
from tcpwin.limits.finding import Finding, Severity
from tcpwin.limits.rule import Rule, Threshold


def judge(case: Case) -> Iterator[Finding]:
    for host in case.analysis.hosts:
        grown = growth(host, *DROPPED)
        total = sum(grown.values())
        if total < case.settings["dropped"]:
            continue
        counted = ", ".join(f"{key} {value:,}" for key, value in grown.items())
        yield short_of_memory(
            case,
            host,
            f"dropped data that had arrived, for lack of receive memory ({counted}): it had to be retransmitted (for "
            f"comparison: 9 in order and 86 out of order in {PUBLISHED}, collapsing limited)",
            grown,
            is_loss=True,
        )


RULE = Rule(
    code="TW210",
    name="receive-queue-pruned",
    title="the receiver's kernel ran out of receive memory and dropped data",
    severity=Severity.WARNING,
    scope="capture",
    limits=("receiver_memory", "receiver_window", "path_loss"),
    judge=judge,
    page=__doc__,
    needs_hosts=True,
    yields_to=("TW211",),
    thresholds={"dropped": Threshold(5, "count", "Any host that is briefly short of memory drops a few packets.")},
)
