"""Quantities over time, and events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import pandas
    import polars
    from numpy.typing import NDArray

    from tcpwin.analysis.table import Table


@dataclass(frozen=True, slots=True)
class Series:
    """A quantity over time, as extremes for each time bucket; only buckets in which something happened.

    Attributes:
        name: receive_window, right_edge, flight, pipe, sequence, acknowledged (bytes). The right edge, sequence and
            acknowledged (SND.UNA) count from the connection's start, with the SYN as one; flight, pipe and acknowledged
            are empty if no ACK of the data was captured. sacked: bytes in flight that SACK reports as received, which
            pipe excludes. window_raw: the window field as on the wire. throughput (payload), goodput (acknowledged
            payload, each byte once) and resent (payload sent before): bytes in each bucket, in `sum`. rtt (of each ACK,
            at the capture point), rtt_smoothed, rto: nanoseconds; rto is a Linux sender's timeout, step by step.
            sender_flight and sender_window: bytes in flight, and the window from SND.UNA, as the sender saw them if the
            capture point is elsewhere. cwnd_model: the congestion window by Linux's rules, bytes. delivery_rate (bit/s)
            and queue_delay (nanoseconds; round trip less the minimum): one value for each round trip, or for several in
            a row if there are more than 256; the path is judged by these at either end.
        time_ns: start of each bucket, nanoseconds since the epoch. Shape (n,), like all arrays here.
        min, max, last: smallest, largest and last value in the bucket.
        sum: their sum.
        width_ns: width of the buckets: 1 while every sample has a bucket, doubled as often as needed.
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

    def table(self) -> Table:
        """Return a row for each bucket: ``time_ns``, ``min``, ``max``, ``last`` and ``sum``."""
        from tcpwin.analysis.table import Table

        return Table({name: getattr(self, name) for name in ("time_ns", "min", "max", "last", "sum")})

    def to_polars(self, *, times: bool = False) -> polars.DataFrame:
        """Return the table as a polars DataFrame; needs the ``tables`` extra. `times` is as for `Table.to_polars`."""
        return self.table().to_polars(times=times)

    def to_pandas(self, *, times: bool = False) -> pandas.DataFrame:
        """Return the table as a pandas DataFrame; needs the ``pandas`` extra. `times` is as for `Table.to_polars`."""
        return self.table().to_pandas(times=times)

    def __repr__(self) -> str:
        return f"<Series {self.name}: {len(self)} buckets of {self.width_ns} ns>"


@dataclass(frozen=True, slots=True)
class BudgetSeries:
    """A sender's time budget over time: consecutive intervals without gaps.

    Each interval has one item while there are few; neighbours are merged when they exceed the view's number of buckets.
    Over a connection's whole life each item adds up to the direction's field, such as ``budget_zero_window_ns`` for
    ``zero_window``.

    Attributes:
        start_ns, end_ns: bounds of each interval, nanoseconds since the epoch. Shape (n,), like all arrays.
        spent_ns: time of each item in each interval, in the order of the fields.
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
    """A silence of a connection that exceeds 200 ms, two round trips or the timeout (rule of TAPO, Zhou et al. 2015).

    Attributes:
        start_ns, end_ns: times of the segments before and after it, which are `before_frame` and `after_frame`.
        cause: handshake_loss, handshake_delay, timeout, double_loss (a lost retransmission), tail_loss,
            tail_loss_probe, spurious_timeout, zero_window, window_update_lost, window_full, delayed_ack, path_delay (an
            ACK that arrived late); response (waiting for the peer's answer), application (the sender had nothing to
            send), idle (neither side had); or unknown.
        sender: the side whose data waited, or which had nothing to send: ``a`` or ``b``.
        flight_bytes: bytes in flight from that side before the silence.
        window_bytes: window of that side; None if unknown in bytes.
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
        """Duration of the stall."""
        return self.end_ns - self.start_ns
