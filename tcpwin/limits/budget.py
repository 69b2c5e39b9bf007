"""Where a sender's time went: every instant of a direction's life belongs to one item.

In: a direction as measured, and the samples of its sender's socket where there are any. Out: Budget. With samples the
kernel's chronographs decide how much of the busy time was waiting for the window or the send buffer (rules.md 8; Linux
`tcp_chrono_start`, net/ipv4/tcp_output.c); the packets' own estimate stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcpwin import _engine
from tcpwin.analysis import Direction
from tcpwin.limits.tables import GROUPS, ITEMS, WINDOW_ITEMS

if TYPE_CHECKING:
    # Without snapshots nothing of them is needed.
    from tcpwin.hosts import SocketSample

CHRONOGRAPHS = ("busy_ns", "rwnd_limited_ns", "sndbuf_limited_ns")
"""What `KernelLimits` takes from a sample."""


@dataclass(frozen=True, slots=True)
class KernelLimits:
    """What the sender's kernel counted, by the last sample of its socket.

    Attributes:
        busy_ns: with data to send or in flight, since the capture began.
        rwnd_limited_ns, sndbuf_limited_ns: of that, waiting for the window or the send buffer.
    """

    busy_ns: int
    rwnd_limited_ns: int
    sndbuf_limited_ns: int


@dataclass(frozen=True, slots=True)
class Budget:
    """The time of one direction by what limited it.

    Attributes:
        items_ns: nanoseconds of each of `ITEMS`; they add up to the connection's duration.
        packets_ns: the same by the packets alone.
        kernel: what the sender's kernel counted; None without samples that cover the transfer.
    """

    items_ns: Mapping[str, int]
    packets_ns: Mapping[str, int]
    kernel: KernelLimits | None = None

    @property
    def total_ns(self) -> int:
        """The connection's duration."""
        return sum(self.items_ns.values())

    def share(self, *items: str) -> float:
        """Share of the duration that items have, 0 to 1."""
        total_ns = self.total_ns
        return sum(self.items_ns[item] for item in items) / total_ns if total_ns else 0.0

    @property
    def groups_ns(self) -> dict[str, int]:
        """Nanoseconds of each of `GROUPS`."""
        return {name: sum(self.items_ns[item] for item in items) for name, items in GROUPS.items()}

    @property
    def largest(self) -> str:
        """The group with most time."""
        groups = self.groups_ns
        return max(groups, key=lambda name: groups[name])

    @property
    def disagreement(self) -> float | None:
        """Share of the duration by which packets and kernel differ about waiting for the window; None without both."""
        if self.kernel is None or not self.total_ns:
            return None
        by_packets = sum(self.packets_ns[item] for item in WINDOW_ITEMS)
        return abs(by_packets - self.kernel.rwnd_limited_ns) / self.total_ns


def draw_up(
    direction: Direction, samples: Sequence[SocketSample] = (), *, spent_ns: Iterable[int] | None = None
) -> Budget:
    """The budget of a direction.

    Args:
        samples: of its sender's socket.
        spent_ns: by the packets alone, of each of `ITEMS`, where that is at hand.
    """
    if spent_ns is None:
        spent_ns = (int(getattr(direction, f"budget_{item}_ns")) for item in ITEMS)
    packets = dict(zip(ITEMS, spent_ns, strict=True))
    kernel = _kernel(direction, samples) if samples else None
    if kernel is None:
        return Budget(packets, packets)
    spent = list(packets.values())
    items = _engine.corrected_by_kernel(spent, kernel.rwnd_limited_ns, kernel.sndbuf_limited_ns)
    return Budget(dict(zip(ITEMS, items, strict=True)), packets, kernel)


def _kernel(direction: Direction, samples: Sequence[SocketSample]) -> KernelLimits | None:
    """What was counted since the capture began, if the samples reach to the end of the data."""
    counted = [each for each in samples if each.busy_ns]
    if not counted:
        return None
    last = max(counted, key=lambda each: each.busy_ns or 0)
    if direction.syn_seen:
        if (last.count("bytes_acked") or 0) < 0.9 * direction.acked_bytes:
            return None
        return KernelLimits(*(last.count(name) or 0 for name in CHRONOGRAPHS))
    # The kernel counts since the socket was opened: only what was added during the capture belongs to it.
    began_ns = direction.first_data_ns or 0
    early = [each for each in counted if each.time_ns is not None and each.time_ns <= began_ns]
    base = max(early, key=lambda each: each.busy_ns or 0) if early else min(counted, key=lambda each: each.busy_ns or 0)
    limits = KernelLimits(*(max(0, (last.count(name) or 0) - (base.count(name) or 0)) for name in CHRONOGRAPHS))
    return limits if limits.busy_ns else None
