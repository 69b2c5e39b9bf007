"""Quantities over time, and events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Series:
    """A quantity over time, as extremes per time bucket; only buckets in which something happened.

    Attributes:
        name: receive_window, right_edge, flight, pipe, sequence, acknowledged (bytes; right edge, sequence and
            acknowledged, which is SND.UNA, count from the connection's start, the SYN as one; flight, pipe and
            acknowledged are empty where no ACK of the data was captured), sacked (bytes in flight
            that SACK reported as received: what pipe leaves out), window_raw (the window field as on the wire);
            throughput (payload), goodput (payload that was acknowledged, each byte once), resent (payload that was
            sent before): bytes per bucket, use `sum`; rtt (of each ACK, at the capture point), rtt_smoothed, rto
            (nanoseconds; the timeout that a Linux sender has, step by step); sender_flight and sender_window (bytes in
            flight, and the window from the SND.UNA that it has, as the sender saw them, where the capture point is
            another) or cwnd_model (the congestion window by Linux's rules, bytes); delivery_rate (bits a second) and
            queue_delay (nanoseconds; round trip less the least), each of a round trip, or of several in a row where
            there are more than 256: what the judge of the path sees, at either end.
        time_ns: when each bucket begins, nanoseconds since the epoch. Shape (n,), like all arrays here.
        min, max, last: least, greatest and last value in the bucket.
        sum: their sum.
        width_ns: the buckets' width: 1 while every sample stands alone, doubled as often as needed.
    """

    name: str
    time_ns: NDArray[np.int64]
    min: NDArray[np.int64]
    max: NDArray[np.int64]
    last: NDArray[np.int64]
    sum: NDArray[np.int64]
    width_ns: int

    def __len__(self) -> int:
        return len(self.time_ns)

    def __repr__(self) -> str:
        return f"<Series {self.name}: {len(self)} buckets of {self.width_ns} ns>"


@dataclass(frozen=True, slots=True)
class BudgetSeries:
    """Where a sender's time went, over time: intervals that follow each other without a gap.

    While there are few, each is of one item; neighbours are put together when there are more than the view has buckets.
    Over a connection's whole life each item adds up to the direction's field, ``budget_zero_window_ns`` for
    ``zero_window``.

    Attributes:
        start_ns, end_ns: when each interval begins and ends, nanoseconds since the epoch. Shape (n,), like all arrays.
        spent_ns: by item, in the order of the fields: how much of each interval it took.
    """

    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    spent_ns: Mapping[str, NDArray[np.int64]]

    def __len__(self) -> int:
        return len(self.start_ns)

    def __repr__(self) -> str:
        used = [name for name, spent_ns in self.spent_ns.items() if spent_ns.any()]
        return f"<BudgetSeries: {len(self)} intervals of {', '.join(used) or 'nothing'}>"


@dataclass(frozen=True, slots=True)
class Stall:
    """A silence of a connection, longer than 200 ms, two round trips or the timeout (rule of TAPO, Zhou et al. 2015).

    Attributes:
        start_ns, end_ns: times of the segments before and after it; `before_frame` and `after_frame` are theirs.
        cause: handshake_loss, handshake_delay, timeout, double_loss (sent again and lost again), tail_loss,
            tail_loss_probe, spurious_timeout, zero_window, window_update_lost, window_full, delayed_ack, path_delay (an
            ACK that came late); response (the peer's answer was not there yet), application (the sender had nothing to
            send), idle (neither had); or unknown.
        sender: whose data waited, or who had nothing to send: ``a`` or ``b``.
        flight_bytes: in flight from that side before the silence.
        window_bytes: the window that it had; None where it is not known in bytes.
    """

    start_ns: int
    end_ns: int
    before_frame: int
    after_frame: int
    cause: str
    sender: str
    flight_bytes: int
    window_bytes: int | None

    @property
    def duration_ns(self) -> int:
        """How long it was."""
        return self.end_ns - self.start_ns
