"""## What it finds

All TCP sockets of a host together used more memory than `net.ipv4.tcp_mem` allows freely.

## Why it matters

Above the second value buffers stop growing and receive windows shrink for all connections of the host; above the third,
memory is refused and packets are dropped (`__sk_mem_raise_allocated`, net/core/sock.c).

## How it is judged

A sample of `/proc/net/sockstat` is above the second value of `tcp_mem`, or the kernel counted at least `pressures`
further entries into memory pressure (`TcpExtTCPMemoryPressures`) between two samples.

## When it is wrong

The memory is that of the whole machine, including containers, not only of the captured connections.

## What to do

Find which sockets hold the memory (`ss -tmn`: sockets with large `r` or `t`), or allow more with `net.ipv4.tcp_mem`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.hosts import LARGEST_COUNT, growth, name_of, side_of
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import bytes_text, count_text

if TYPE_CHECKING:
    from tcpwin.hosts import Host, MemorySample
    from tcpwin.kernel import HostMemory

COUNTER = "TcpExtTCPMemoryPressures"


def judge(case: Case) -> Iterator[Finding]:
    for host in case.analysis.hosts:
        pressures = growth(host, COUNTER).get(COUNTER, 0)
        is_counted = pressures > 0 and pressures >= case.settings["pressures"]
        above = [(sample, memory) for sample in host.memory if (memory := _above(sample, host)) is not None]
        if not is_counted and not above:
            continue
        worst = max((memory for _, memory in above), key=lambda memory: memory.tcp_memory_bytes or 0, default=None)
        is_exhausted = worst is not None and worst.state == "exhausted"
        said = []
        if worst is not None:
            bound = (worst.high_bytes if is_exhausted else worst.pressure_bytes) or 0
            said.append(f"{bytes_text(worst.tcp_memory_bytes or 0)} in use, above the {bytes_text(bound)} of tcp_mem")
        if is_counted:
            said.append(f"the kernel counted {count_text(pressures, 'entry', 'entries')} into memory pressure")
        times = [sample.time_ns for sample, _ in above if sample.time_ns is not None]
        yield case.finding(
            f"TCP was short of memory on {name_of(host)}: {'; '.join(said)}. "
            + ("Packets may be dropped" if is_exhausted else "Buffers stop growing and windows shrink"),
            severity=Severity.ERROR if is_exhausted else None,
            owner="application",
            side=side_of(host),
            confidence="certain",
            evidence=Evidence(
                start_ns=times[0] if times else None,
                end_ns=times[-1] if times else None,
                values={
                    "host": host.label,
                    COUNTER: pressures,
                    "samples_above": len(above),
                    **({} if worst is None else _numbers(worst)),
                },
                ruled_out="Not one connection's buffer: these numbers cover all TCP sockets of the machine.",
            ),
            remedy=Remedy(
                f"Find which sockets on {name_of(host)} hold the memory, or allow more.",
                settings=("ss -tmn", *_line(worst, host)),
                side_effects="Memory used by TCP is not available to anything else on the machine.",
            ),
        )


def _above(sample: MemorySample, host: Host) -> HostMemory | None:
    from tcpwin.kernel import host_memory

    memory = host_memory(sample, settings=host.settings)
    is_possible = max(memory.tcp_memory_bytes or 0, memory.high_bytes or 0) < LARGEST_COUNT
    return memory if memory.state in ("pressure", "exhausted") and is_possible else None


def _numbers(memory: HostMemory) -> dict[str, int]:
    return {
        "tcp_memory_bytes": memory.tcp_memory_bytes or 0,
        "pressure_bytes": memory.pressure_bytes or 0,
        "high_bytes": memory.high_bytes or 0,
    }


def _line(memory: HostMemory | None, host: Host) -> tuple[str, ...]:
    """Return the setting with twice the present limits."""
    bounds = None if memory is None or host.settings is None else host.settings.numbers("net.ipv4.tcp_mem")
    return () if bounds is None else (f"net.ipv4.tcp_mem = {' '.join(str(2 * bound) for bound in bounds)}",)


RULE = Rule(
    code="TW707",
    name="tcp-memory-pressure",
    title="TCP as a whole was short of memory on a host",
    severity=Severity.WARNING,
    scope="capture",
    limits=("receiver_window",),
    judge=judge,
    page=__doc__,
    needs_hosts=True,
    thresholds={
        "pressures": Threshold(1, "count", "Each entry into memory pressure affects all connections of the host."),
    },
)
