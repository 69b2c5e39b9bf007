"""Helpers for rules on settings and counters: a host's name, its connections, the growth of its counters.

In: a case, a host from its snapshots. Out: words and numbers. It judges nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from tcpwin.analysis import Direction
from tcpwin.limits.case import Case
from tcpwin.limits.roles import ENDS

if TYPE_CHECKING:
    from tcpwin.hosts import CounterSample, Host
    from tcpwin.kernel import Kernel
    from tcpwin.limits.connection import Connection

FIRST_LOOKED_AT = 1000
"""Connections of a host that are examined individually."""
LARGEST_SIZE_BYTES = (1 << 31) - 1
"""tcp_rmem and tcp_wmem are signed 32-bit numbers."""
LARGEST_COUNT = 1 << 64
"""Kernel counters have 64 bits: a file with larger values is wrong."""


def name_of(host: Host) -> str:
    """Return the host's role if it has sockets of one side only, else its label."""
    if len(host.sides) == 1:
        [side] = host.sides
        return f"the {ENDS[side]} ({host.label})" if host.label else f"the {ENDS[side]}"
    return f"the host {host.label}" if host.label else "the host"


def side_of(host: Host) -> str | None:
    """Return the side whose sockets the host has, or None if it has both or none."""
    return next(iter(host.sides)) if len(host.sides) == 1 else None


def connections_of(case: Case, host: Host) -> Iterator[tuple[Connection, str]]:
    """Yield the first connections for which the host has samples, with its side."""
    for match in islice(host.found, FIRST_LOOKED_AT):
        yield case.analysis.connections[match.connection], match.side


def longest_rtt_ns(case: Case, host: Host) -> int | None:
    """Return the longest path round trip among the host's connections, or None if unknown."""
    known = [each.path_rtt_ns for each, _ in connections_of(case, host) if each.path_rtt_ns]
    return max(known, default=None)


def kernel_version(host: Host) -> Kernel | None:
    """Return the host's kernel version from `uname` or its settings."""
    from tcpwin.kernel import kernel_of

    by_name = None if host.kernel is None else host.kernel.version
    return by_name or kernel_of(host.settings)


def sizes_of(host: Host, name: str) -> tuple[int, int, int] | None:
    """Return a setting with three sizes, such as tcp_rmem, or None if it is absent or impossible."""
    sizes = None if host.settings is None else host.settings.numbers(name)
    if sizes is None or len(sizes) != 3 or not all(1 <= size <= LARGEST_SIZE_BYTES for size in sizes):
        return None
    return sizes[0], sizes[1], sizes[2]


def growth(host: Host | None, *names: str) -> dict[str, int]:
    """Return how much a host's counters grew over its samples, without names that did not grow or are unknown.

    Each counter comes from one source: the one that covers the most time.
    """
    if host is None:
        return {}
    found: dict[str, int] = {}
    wanted = set(names)
    for source in host.counter_sources:
        grown, told = _growth_of(source.samples, wanted)
        found.update(grown)
        wanted -= told
    return {name: found[name] for name in names if found.get(name, 0) > 0}


def _growth_of(samples: Sequence[CounterSample], names: set[str]) -> tuple[dict[str, int], set[str]]:
    """Return the growth in the samples of one source, and the names that the source reports."""
    from tcpwin.hosts import deltas

    found: dict[str, int] = {}
    told: set[str] = set()
    # The first increment of `nstat` counts since its previous run, which may be long ago.
    for delta in islice(deltas(samples), 1 if samples and samples[0].is_increment else 0, None):
        for name in names & delta.values.keys():
            told.add(name)
            if 0 < delta.values[name] < LARGEST_COUNT:
                found[name] = found.get(name, 0) + delta.values[name]
    return found, told


def syns_of(case: Case, host: Host) -> Iterator[Direction]:
    """Yield the directions of the host's connections whose SYN or SYN/ACK it sent and the capture contains."""
    for connection, side in connections_of(case, host):
        sent = connection.a_to_b if side == "a" else connection.b_to_a
        if sent.syn_seen:
            yield sent


def best_goodput_bps(case: Case) -> float:
    """Return the best goodput in bit/s of any connection between the case's two addresses, in either direction."""
    connection = case.connection
    conditions = (
        ("connection.a_address", "==", connection.a.address),
        ("connection.b_address", "==", connection.b.address),
        ("goodput_bps", ">=", case.data.goodput_bps or 0.0),
    )
    found = islice(case.analysis.select("direction", conditions), FIRST_LOOKED_AT)
    connections = case.analysis.connections
    rates = [(connections[id].a_to_b if way == "a_to_b" else connections[id].b_to_a).goodput_bps for id, way in found]
    return max((rate for rate in rates if rate is not None), default=0.0)
