"""The time budget of a sender: every instant of a direction's life belongs to one item.

In: a measured direction and any samples of its sender's socket. Out: Budget. With samples, the kernel's chronographs
decide how much of the busy time was spent waiting for the window or the send buffer (rules.md 8; Linux
`tcp_chrono_start`, net/ipv4/tcp_output.c); the estimate from packets is kept as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcpwin import _engine
from tcpwin.analysis import Direction
from tcpwin.limits.tables import GROUPS, ITEMS, WINDOW_ITEMS

if TYPE_CHECKING:
    # Needed only with snapshots.
    from tcpwin.hosts import SocketSample

CHRONOGRAPHS = ("busy_ns", "rwnd_limited_ns", "sndbuf_limited_ns")
"""Counters of a sample that `KernelLimits` uses."""


@dataclass(frozen=True, slots=True)
class KernelLimits:
    """Counters of the sender's kernel, from the last sample of its socket.

    Attributes:
        busy_ns: time with data to send or in flight, since the capture began.
        rwnd_limited_ns, sndbuf_limited_ns: part of it spent waiting for the window or the send buffer.
    """

    busy_ns: int
    rwnd_limited_ns: int
    sndbuf_limited_ns: int


@dataclass(frozen=True, slots=True)
class Budget:
    """The time of one direction, divided by limit.

    Attributes:
        items_ns: nanoseconds of each of `ITEMS`; they add up to the connection's duration.
        packets_ns: the same, from the packets alone.
        kernel: the kernel's counters; None without samples that cover the transfer.
    """

    items_ns: Mapping[str, int]
    packets_ns: Mapping[str, int]
    kernel: KernelLimits | None = None

    @property
    def total_ns(self) -> int:
        """The connection's duration."""
        return sum(self.items_ns.values())

    def share(self, *items: str) -> float:
        """Return the items' share of the duration, 0 to 1."""
        total_ns = self.total_ns
        return sum(self.items_ns[item] for item in items) / total_ns if total_ns else 0.0

    @property
    def groups_ns(self) -> dict[str, int]:
        """Nanoseconds of each of `GROUPS`."""
        return {name: sum(self.items_ns[item] for item in items) for name, items in GROUPS.items()}

    @property
    def largest(self) -> str:
        """The group with the most time."""
        groups = self.groups_ns
        return max(groups, key=lambda name: groups[name])

    @property
    def disagreement(self) -> float | None:
        """Difference between packets and kernel in the time spent waiting for the window, as a share of the duration.

        None without kernel counters.
        """
        if self.kernel is None or not self.total_ns:
            return None
        by_packets = sum(self.packets_ns[item] for item in WINDOW_ITEMS)
        return abs(by_packets - self.kernel.rwnd_limited_ns) / self.total_ns


def draw_up(
    direction: Direction, samples: Sequence[SocketSample] = (), *, spent_ns: Iterable[int] | None = None
) -> Budget:
    """Draw up the budget of a direction.

    Args:
        samples: samples of the sender's socket.
        spent_ns: nanoseconds of each of `ITEMS` from the packets alone, if already known.
    """
    if spent_ns is None:
        spent_ns = (int(getattr(direction, f"budget_{item}_ns")) for item in ITEMS)
    packets = dict(zip(ITEMS, spent_ns, strict=True))
    kernel = _kernel(direction, samples) if samples else None
    if kernel is None:
        return Budget(packets, packets)
    if _is_paced(samples) and kernel.rwnd_limited_ns < sum(packets[item] for item in WINDOW_ITEMS):
        return Budget(packets, packets)
    spent = list(packets.values())
    items = _engine.corrected_by_kernel(spent, kernel.rwnd_limited_ns, kernel.sndbuf_limited_ns)
    return Budget(dict(zip(ITEMS, items, strict=True)), packets, kernel)


def _is_paced(samples: Sequence[SocketSample]) -> bool:
    """Return whether the kernel paces: it then counts less time for the window than the window limits.

    `tcp_write_xmit` (net/ipv4/tcp_output.c) leaves its loop at `tcp_pacing_check`, before it looks at the window. BBR
    always paces.
    """
    return any((sample.congestion_control or "").startswith("bbr") for sample in samples)


def _kernel(direction: Direction, samples: Sequence[SocketSample]) -> KernelLimits | None:
    """Return the counters since the capture began, if the samples extend to the end of the data."""
    counted = [each for each in samples if each.busy_ns]
    if not counted:
        return None
    last = max(counted, key=lambda each: each.busy_ns or 0)
    if direction.syn_seen:
        if (last.count("bytes_acked") or 0) < 0.9 * direction.acked_bytes:
            return None
        return KernelLimits(*(last.count(name) or 0 for name in CHRONOGRAPHS))
    # The kernel counts from the opening of the socket: use only the increase during the capture.
    began_ns = direction.first_data_ns or 0
    early = [each for each in counted if each.time_ns is not None and each.time_ns <= began_ns]
    base = max(early, key=lambda each: each.busy_ns or 0) if early else min(counted, key=lambda each: each.busy_ns or 0)
    limits = KernelLimits(*(max(0, (last.count(name) or 0) - (base.count(name) or 0)) for name in CHRONOGRAPHS))
    return limits if limits.busy_ns else None
