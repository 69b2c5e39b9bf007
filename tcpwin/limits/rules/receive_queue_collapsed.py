"""## What it finds

The receiver's kernel ran out of receive memory and collapsed receive queues to save space.

## Why it matters

Collapsing copies everything in a queue into fewer buffers, in the receive path. On large queues this takes tens of
milliseconds, during which that processor handles no other packet: Cloudflare measured 32 to 64 ms per call.

## How it is judged

The host's counter TcpExtPruneCalled grew by at least `prunes`, or TcpExtTCPRcvCollapsed by at least `collapsed`, while
it was watched (`nstat`). These counters belong to the host, not to a connection; if only one connection in the capture
brought it data, the finding names that connection.

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
from tcpwin.limits.evidence.dropped import COLLAPSED, PUBLISHED, short_of_memory
from tcpwin.limits.evidence.hosts import growth
from tcpwin.limits.finding import Finding, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text


def judge(case: Case) -> Iterator[Finding]:
    for host in case.analysis.hosts:
        grown = growth(host, *COLLAPSED)
        prunes, collapsed = (grown.get(name, 0) for name in COLLAPSED)
        if prunes < case.settings["prunes"] and collapsed < case.settings["collapsed"]:
            continue
        yield short_of_memory(
            case,
            host,
            f"ran out of receive memory {count_text(prunes, 'time')} and collapsed {count_text(collapsed, 'packet')} "
            f"to make room, which delays everything it receives (for comparison: 24 and 490,000 in {PUBLISHED})",
            {key: grown.get(key, 0) for key in COLLAPSED},
        )


RULE = Rule(
    code="TW209",
    name="receive-queue-collapsed",
    title="the receiver's kernel collapsed receive queues",
    severity=Severity.WARNING,
    scope="capture",
    limits=("receiver_window", "path_loss"),
    judge=judge,
    page=__doc__,
    needs_hosts=True,
    thresholds={
        "prunes": Threshold(
            5, "count", "Any busy host collapses a queue now and then; Cloudflare's runs counted 24 or more."
        ),
        "collapsed": Threshold(1000, "count", "In packets: a smaller collapse copies little and is quick."),
    },
)
