"""## What it finds

The receiver's kernel ran out of receive memory and collapsed receive queues to save packets.

## Why it matters

Collapsing copies all that waits in a queue into fewer buffers, in the receive path. On large queues it takes tens of
milliseconds, during which that processor serves no other packet: Cloudflare measured 32 to 64 ms a call.

## How it is judged

The host's counters TcpExtPruneCalled grew by `prunes` or more, or TcpExtTCPRcvCollapsed by `collapsed` or more, while
it was watched (`nstat`). Counters are the host's, not a connection's: where the capture has one connection that
brought it data, the finding names it.

Cloudflare's oscillating reader (2022; 1 Gbit/s, 300 ms, one minute) counted, with the memory that each byte of
payload is reckoned with:

| tcp_rmem MiB / scale | reckoned | stock 5.15: pruned, collapsed | collapsing limited: QDrop, OFODrop |
|---|---|---|---|
| 512 / -2 | 4 | 0, 0 | 0, 0 |
| 256 / 1 | 2 | 0, 0 | 0, 0 |
| 170 / 2 | 1.33 | 24, 490 K | 9, 86 |
| 146 / 3 | 1.14 | 57, 616 K | 7, 1550 |
| 137 / 4 | 1.07 | 74, 803 K | 10, 3020 |

## When it is wrong

Another connection of the host, which the capture does not hold, may have caused it.

## What to do

Reckon with more memory for a byte of payload, so that the window ends before the memory does: before Linux 6.6 a
smaller `net.ipv4.tcp_adv_win_scale` with a larger `net.ipv4.tcp_rmem`. And let the application read.
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
            5, "count", "Any busy host collapses a queue now and then; a run of Cloudflare's counts 24 and more."
        ),
        "collapsed": Threshold(1000, "count", "In packets: below it a collapse copies little and takes little time."),
    },
)
