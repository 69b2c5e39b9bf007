"""A transfer's behaviour, to compare a run with the transfer it imitates.

In: a connection and its measurements. Out: Behaviour: rate, window, flight, zero windows, losses, and bytes delivered
over time. It judges only how similar two of them are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcpwin.units import bytes_text, rate_text, share_text, time_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpwin.limits import Connection
    from tcpwin.reference import Measured

CURVE_POINTS = 400
"""Points of the curve of bytes over time: as many as a figure can show."""
LEAST_LOSS_SHARE = 0.01
"""Share of the segments: loss shares that differ by less count as similar, whatever their ratio."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Behaviour of one transfer.

    Attributes:
        duration_ns: the connection's duration; `goodput_bps` covers only the time with data.
        window_mean_bytes, window_max_bytes: receive window; flights likewise; None if none was seen.
        zero_windows, zero_window_ns: number and total time of closed windows.
        resent_segments, data_segments: retransmitted segments, and all with data.
        time_ns, sum_bytes: payload acknowledged over time since the connection's first packet.
    """

    duration_ns: int
    goodput_bps: float | None
    window_mean_bytes: float | None
    window_max_bytes: int | None
    flight_mean_bytes: float | None
    flight_max_bytes: int | None
    zero_windows: int
    zero_window_ns: int
    resent_segments: int
    data_segments: int
    time_ns: tuple[int, ...]
    sum_bytes: tuple[int, ...]

    @property
    def resent_share(self) -> float:
        """Return the retransmitted share of the data segments."""
        return self.resent_segments / max(self.data_segments, 1)

    @property
    def zero_window_share(self) -> float:
        """Return the share of the duration with the window closed."""
        return self.zero_window_ns / max(self.duration_ns, 1)


def behaviour_of(connection: Connection, measured: Measured) -> Behaviour:
    """Return the behaviour of the measured direction. Reads the source again, like `Connection.series`."""
    assert measured.direction is not None, "it is of a capture"
    data = connection.a_to_b if measured.direction == "a_to_b" else connection.b_to_a
    series = connection.series("goodput", direction=measured.direction)
    sums = series.sum.cumsum()
    # The last point is the final value, so the first bucket's may be dropped.
    chosen = slice(None, None, -max(-(-len(sums) // CURVE_POINTS), 1))
    ends_ns = series.time_ns + (series.width_ns if series.width_ns > 1 else 0)
    return Behaviour(
        duration_ns=connection.duration_ns,
        goodput_bps=measured.goodput_bps,
        window_mean_bytes=measured.window_mean_bytes,
        window_max_bytes=measured.window_max_bytes,
        flight_mean_bytes=measured.flight_mean_bytes,
        flight_max_bytes=measured.flight_max_bytes,
        zero_windows=data.zero_window_episode_count,
        zero_window_ns=data.zero_window_ns,
        resent_segments=data.retransmissions,
        data_segments=data.data_segments,
        time_ns=(0, *(ends_ns[chosen][::-1] - connection.start_ns).tolist()),
        sum_bytes=(0, *sums[chosen][::-1].tolist()),
    )


def score(original: Behaviour, run: Behaviour) -> float:
    """Score a run's similarity from 0 to 1: the mean over throughput, window, flight, zero windows and retransmissions.

    Each part is the smaller value ÷ the larger; for zero windows, whose share of time may be 0, it is 1 minus the
    difference of the shares.
    """
    parts = [
        _near(first, second)
        for first, second in (
            (original.goodput_bps, run.goodput_bps),
            (original.window_mean_bytes, run.window_mean_bytes),
            (original.flight_mean_bytes, run.flight_mean_bytes),
        )
        if first is not None and second is not None
    ]
    parts.append(1 - min(abs(original.zero_window_share - run.zero_window_share), 1))
    parts.append(_near(original.resent_share, run.resent_share, least=LEAST_LOSS_SHARE))
    return sum(parts) / len(parts)


def _near(first: float, second: float, *, least: float = 0.0) -> float:
    most = max(first, second, least)
    return 1 - abs(first - second) / most if most else 1.0


def behaviour_rows(columns: Sequence[Behaviour]) -> list[tuple[str, tuple[str, ...]]]:
    """Return one formatted row per quantity."""

    def size(value: float | None) -> str:
        return "–" if value is None else bytes_text(value)

    def cells(each: Behaviour) -> tuple[str, ...]:
        closed = "none"
        if each.zero_windows:
            closed = f"{each.zero_windows:,}, {time_text(each.zero_window_ns)}"
        resent = "none"
        if each.resent_segments:
            resent = f"{each.resent_segments:,}, {share_text(each.resent_share)}"
        return (
            time_text(each.duration_ns),
            "–" if each.goodput_bps is None else rate_text(each.goodput_bps),
            f"{size(each.window_mean_bytes)}, {size(each.window_max_bytes)}",
            f"{size(each.flight_mean_bytes)}, {size(each.flight_max_bytes)}",
            closed,
            resent,
        )

    names = (
        "duration",
        "throughput",
        "window: mean, most",
        "in flight: mean, most",
        "zero windows: count, time",
        "retransmissions: segments, share",
    )
    return list(zip(names, zip(*map(cells, columns), strict=True), strict=True))
