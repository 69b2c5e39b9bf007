"""A host's data other than sockets: counters, memory of all sockets, settings, kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CounterSample:
    """Counters of the network stack at one time, by `nstat`'s names (``TcpRetransSegs``, ``TcpExtPruneCalled``).

    Attributes:
        time_ns: nanoseconds since the epoch by the host's clock; None if unknown.
        line: number of its first line in its file, from 1.
        values: counts since boot; or, if `is_increment`, since the previous sample (`nstat` without -a).
        is_increment: None if the file does not show which of the two it is: `nstat` prints both in the same form.
        rates: non-zero rates per second printed by `nstat`.
        resets: names that `nstat` marked ``(overflow)``: the counter ran backwards.
    """

    time_ns: int | None
    line: int
    values: Mapping[str, int]
    is_increment: bool | None
    rates: Mapping[str, float]
    resets: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class MemorySample:
    """Sockets of all kinds and TCP's memory, of ``/proc/net/sockstat`` and ``sockstat6``, at one time.

    Attributes:
        tcp_inuse, tcp_orphan, tcp_time_wait, tcp_alloc: sockets (IPv4's inuse and the protocol's other three).
        tcp_memory_pages: memory pages of all TCP sockets, bounded by `net.ipv4.tcp_mem`.
        page_size_bytes: the host's page size; 4096 if unknown.
        values: every number by section and name, such as ``("UDP", "inuse")``.
    """

    time_ns: int | None
    line: int
    tcp_inuse: int | None
    tcp_orphan: int | None
    tcp_time_wait: int | None
    tcp_alloc: int | None
    tcp_memory_pages: int | None
    tcp6_inuse: int | None
    page_size_bytes: int
    values: Mapping[tuple[str, str], int]

    @classmethod
    def of(
        cls, time_ns: int | None, line: int, values: Mapping[tuple[str, str], int], page_size_bytes: int
    ) -> MemorySample:
        """Create a sample from the kernel's numbers by section and name."""
        return cls(
            time_ns=time_ns,
            line=line,
            tcp_inuse=values.get(("TCP", "inuse")),
            tcp_orphan=values.get(("TCP", "orphan")),
            tcp_time_wait=values.get(("TCP", "tw")),
            tcp_alloc=values.get(("TCP", "alloc")),
            tcp_memory_pages=values.get(("TCP", "mem")),
            tcp6_inuse=values.get(("TCP6", "inuse")),
            page_size_bytes=page_size_bytes,
            values=values,
        )

    @property
    def tcp_memory_bytes(self) -> int | None:
        """Return the memory of all TCP sockets."""
        return None if self.tcp_memory_pages is None else self.tcp_memory_pages * self.page_size_bytes


@dataclass(frozen=True, slots=True)
class SettingsSample:
    """Settings of a kernel (sysctl) by dotted name, as text with single spaces: ``"4096 131072 6291456"``."""

    time_ns: int | None
    line: int
    values: Mapping[str, str]

    def number(self, name: str) -> int | None:
        """Return a setting with one number."""
        numbers = self.numbers(name)
        return numbers[0] if numbers is not None and len(numbers) == 1 else None

    def numbers(self, name: str) -> tuple[int, ...] | None:
        """Return a setting with several numbers, such as ``net.ipv4.tcp_rmem``: minimum, default, maximum."""
        try:
            return tuple(int(part) for part in self.values[name].split())
        except (KeyError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class KernelSample:
    """The kernel of a host.

    Attributes:
        release: the output of `uname -r`.
        hostname: the host name from `uname -n` or `uname -a`.
        page_size_bytes: the output of `getconf PAGESIZE`.
        ticks_per_second: CONFIG_HZ, the kernel's timer frequency, if known.
    """

    time_ns: int | None
    line: int
    release: str
    hostname: str | None = None
    page_size_bytes: int | None = None
    ticks_per_second: int | None = None

    @property
    def version(self) -> tuple[int, int] | None:
        """Return the major and minor number of the release."""
        match = re.match(r"(\d+)\.(\d+)", self.release)
        return (int(match[1]), int(match[2])) if match else None
