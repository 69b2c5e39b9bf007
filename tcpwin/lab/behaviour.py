"""How a transfer behaved, so that a run can be put beside what it was made like.

In: a connection, what was measured of it. Out: Behaviour: rate, window, flight, zero windows, losses, and the bytes
that came through over time. It judges nothing but how near two of them are.
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
"""Of the bytes over time: as many as a figure has room for."""
LEAST_LOSS_SHARE = 0.01
"""Of the segments: shares of loss that differ by less are nearly alike, however far apart by their ratio."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What one transfer did.

    Attributes:
        duration_ns: of the connection; `goodput_bps` is over its data alone.
        window_mean_bytes, window_max_bytes: of the receive window; flights likewise; None where none was seen.
        zero_windows, zero_window_ns: how often the window was closed, and for how long in all.
        resent_segments, data_segments: sent again, and all with data.
        time_ns, sum_bytes: payload acknowledged by a time since the connection's first packet.
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
        """Of its segments with data, those sent again."""
        return self.resent_segments / max(self.data_segments, 1)

    @property
    def zero_window_share(self) -> float:
        """Of its duration, with the window closed."""
        return self.zero_window_ns / max(self.duration_ns, 1)


def behaviour_of(connection: Connection, measured: Measured) -> Behaviour:
    """How the direction that was measured behaved. Reads the source again, as `Connection.series` does."""
    assert measured.direction is not None, "it is of a capture"
    data = connection.a_to_b if measured.direction == "a_to_b" else connection.b_to_a
    series = connection.series("goodput", direction=measured.direction)
    sums = series.sum.cumsum()
    # The last point is how it ended: that of the first bucket may go.
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
    """How near a run came, from 0 to 1: the mean over throughput, window, flight, zero windows and segments sent again.

    Each part is the smaller by the larger; of zero windows, whose share of the time may be none, it is 1 less what the
    shares differ by.
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
    """What each did, a row for each quantity, as people read it."""

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
        "sent again: segments, share",
    )
    return list(zip(names, zip(*map(cells, columns), strict=True), strict=True))
