"""How often and how far a receiver's buffer was full, according to its kernel.

In: a case with samples of the receiver's socket. Out: FullBuffer, or None. It judges no cause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tcpwin.limits.case import Case

if TYPE_CHECKING:
    from tcpwin.hosts import SocketSample

FULL = 0.8
"""Memory in use ÷ allowed (r ÷ rb of skmem) above which little window is left: Linux offers none below a sixteenth of
what the buffer allows (`__tcp_select_window`, net/ipv4/tcp_output.c)."""


class FullBuffer(NamedTuple):
    """Fill level of a receive buffer.

    Attributes:
        samples: samples of the socket with skmem; in `full` of them r ÷ rb was at least `FULL`, with unread in-order
            data.
        worst: the fullest sample.
        start_ns, end_ns: times of the first and last full sample by the host's clock; None if the file has no times.
    """

    samples: int
    full: int
    worst: SocketSample
    start_ns: int | None
    end_ns: int | None

    @property
    def share(self) -> float:
        """Return the share of full samples."""
        return self.full / self.samples


def full_buffer(case: Case, least_share: float = 0.2) -> FullBuffer | None:
    """Return the receiver's buffer fill level, or None without samples or if less than that share were full."""
    told = [each for each in case.sockets(case.receiver) if each.rcvbuf_bytes and each.rmem_alloc_bytes is not None]
    full = [each for each in told if _fill(each) >= FULL and _is_unread(each)]
    if not full or len(full) < least_share * len(told):
        return None
    return FullBuffer(len(told), len(full), max(full, key=_fill), full[0].time_ns, full[-1].time_ns)


def _fill(sample: SocketSample) -> float:
    return (sample.rmem_alloc_bytes or 0) / (sample.rcvbuf_bytes or 1)


def _is_unread(sample: SocketSample) -> bool:
    # r includes out-of-order data: even at an overhead of 4, a quarter of the memory is in-order payload.
    return (sample.recv_q_bytes or 0) * 4 >= (sample.rmem_alloc_bytes or 0)
