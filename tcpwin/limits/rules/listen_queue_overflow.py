"""## What it finds

A host's listen queues overflowed: it dropped connections that had completed their handshake.

## Why it matters

The client's final ACK, or its SYN, is dropped, and the client waits a second or more to retransmit. To the client the
server looks slow or dead.

## How it is judged

`TcpExtListenOverflows` grew by at least `overflows` between samples of the host. `TcpExtListenDrops` also includes SYNs
dropped for other reasons and is shown for comparison.

## When it is wrong

The counters cover the network namespace, not just the captured connections: another service may have overflowed.

## What to do

Make the application accept connections faster. Then lengthen the queue: the smaller of the application's `listen()`
backlog and `net.core.somaxconn` is the limit.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.hosts import growth, name_of, side_of
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text

MAX_QUEUE = (1 << 31) - 1
"""somaxconn is a signed 32-bit number."""
OVERFLOWS, DROPS = "TcpExtListenOverflows", "TcpExtListenDrops"


def judge(case: Case) -> Iterator[Finding]:
    for host in case.analysis.hosts:
        grown = growth(host, OVERFLOWS, DROPS)
        overflows = grown.get(OVERFLOWS, 0)
        if overflows < 1 or overflows < case.settings["overflows"]:
            continue
        most = None if host.settings is None else host.settings.number("net.core.somaxconn")
        most = most if most is None or 0 <= most <= MAX_QUEUE else None
        times = [sample.time_ns for sample in host.counters if sample.time_ns is not None]
        yield case.finding(
            f"The listen queue of {name_of(host)} overflowed for {count_text(overflows, 'connection')}: its "
            "application accepts too slowly",
            owner="application",
            side=side_of(host),
            confidence="certain",
            evidence=Evidence(
                start_ns=times[0] if times else None,
                end_ns=times[-1] if times else None,
                values={
                    "host": host.label,
                    OVERFLOWS: overflows,
                    DROPS: grown.get(DROPS, 0),
                    **({} if most is None else {"net.core.somaxconn": most}),
                },
                ruled_out="Not loss on the network: the kernel counts these itself.",
            ),
            remedy=Remedy(
                f"Make the application on {name_of(host)} accept faster, or lengthen its listen queue.",
                settings=("ss -ltn", f"sysctl -w net.core.somaxconn={max(4096, 2 * (most or 0))}"),
                side_effects=(
                    "The application must ask for as much in listen(), and be restarted. Waiting connections are not "
                    "served faster."
                ),
            ),
        )


RULE = Rule(
    code="TW708",
    name="listen-queue-overflow",
    title="a listen queue overflowed",
    severity=Severity.WARNING,
    scope="capture",
    limits=("handshake",),
    judge=judge,
    page=__doc__,
    needs_hosts=True,
    thresholds={
        "overflows": Threshold(1, "count", "Each is a client that waited at least a second for a retransmission."),
    },
)
