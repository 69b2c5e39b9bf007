"""## What it finds

Receive buffer autotuning is switched off on a host: `net.ipv4.tcp_moderate_rcvbuf` is 0.

## Why it matters

The receive buffer stays at the second value of `net.ipv4.tcp_rmem`, 128 KiB by default, and the window at half of that:
5.2 Mbit/s per connection over 100 ms.

## How it is judged

From the host's settings: the window that the second value allows is below `window_bytes`, the longest round trip of the
host's connections is at least `rtt_ns`, and at least one connection received more than that window. If `ss -m` shows a
buffer larger than the second value, the setting had no effect and nothing is reported.

## When it is wrong

The setting does not affect programs that set SO_RCVBUF themselves.

## What to do

Switch autotuning on, which is the default. Alternatively raise the second value of `tcp_rmem`; every connection then
gets that buffer from the start.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.hosts import connections_of, kernel_version, longest_rtt_ns, name_of, side_of, sizes_of
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import bytes_text, rate_text, time_text

if TYPE_CHECKING:
    from tcpwin.limits.connection import Connection

SETTING = "net.ipv4.tcp_moderate_rcvbuf"


def judge(case: Case) -> Iterator[Finding]:
    from tcpwin.kernel import adv_win_scale_of, memory_models, window_rate_bps

    for host in case.analysis.hosts:
        settings = host.settings
        if settings is None or settings.number(SETTING) != 0:
            continue
        sizes, rtt_ns = sizes_of(host, "net.ipv4.tcp_rmem"), longest_rtt_ns(case, host)
        if sizes is None or rtt_ns is None or rtt_ns < case.settings["rtt_ns"]:
            continue
        buffers = [sample.rcvbuf_bytes or 0 for samples in host.found.values() for sample in samples]
        if max(buffers, default=0) > sizes[1]:
            continue
        models = memory_models(kernel_version(host), adv_win_scale=adv_win_scale_of(settings))
        window = max(model.window_from_space(sizes[1]) for model in models)
        received = max((_received_bytes(each, side) for each, side in connections_of(case, host)), default=0)
        if window < 1 or window >= case.settings["window_bytes"] or received < window:
            continue
        ceiling = float(window_rate_bps(window, rtt_ns))
        yield case.finding(
            f"Receive autotuning is off on {name_of(host)}: buffers stay at {bytes_text(sizes[1])}, which carries "
            f"{rate_text(ceiling)} over {time_text(rtt_ns)}",
            owner="host",
            side=side_of(host),
            confidence="certain" if max(buffers, default=0) else "likely",
            evidence=Evidence(
                values={
                    SETTING: 0,
                    "host": host.label,
                    "tcp_rmem_default_bytes": sizes[1],
                    "window_bytes": window,
                    "path_rtt_ns": rtt_ns,
                    "ceiling_bps": ceiling,
                    "largest_rcvbuf_bytes": max(buffers, default=0),
                    "most_received_bytes": received,
                },
                ruled_out="Not a buffer that grew anyway: no socket sample shows one above that value.",
            ),
            remedy=Remedy(
                f"Switch receive autotuning on at {name_of(host)}.",
                settings=(f"sysctl -w {SETTING}=1",),
                side_effects="Buffers grow up to the third value of tcp_rmem.",
            ),
        )


def _received_bytes(connection: Connection, side: str) -> int:
    return (connection.b_to_a if side == "a" else connection.a_to_b).unique_bytes


RULE = Rule(
    code="TW706",
    name="autotuning-off",
    title="receive autotuning is switched off on a host",
    severity=Severity.WARNING,
    scope="capture",
    limits=("receiver_window",),
    judge=judge,
    page=__doc__,
    needs_hosts=True,
    thresholds={
        "window_bytes": Threshold(
            3 << 20,
            "bytes",
            "Autotuning reaches this with Linux's default of 6 MiB: a fixed window this large costs nothing.",
        ),
        "rtt_ns": Threshold(500_000, "ns", "Over half a millisecond, 64 KiB carry a gigabit per second."),
    },
)
