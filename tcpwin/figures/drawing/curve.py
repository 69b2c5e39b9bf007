"""Series as curves: step lines, bands, and thinning that keeps every extreme.

In: a Series and a limit on its points. Out: traces. A bucket of several samples is drawn by its minimum, maximum
and last value; if these are too many, the M4 algorithm (Jugel et al., VLDB 2014) selects among them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tcpwin.analysis import Series

if TYPE_CHECKING:
    from tcpwin.figures.drawing.panel import Trace
    from tcpwin.figures.drawing.request import Request

Values = NDArray[Any]
_WHOLE = (np.int8, np.uint8, np.int16, np.uint16, np.int32)


def points_of(series: Series) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the times and values that draw a series, shape (n,) each: one for a single sample, three for a bucket."""
    if series.width_ns == 1:
        return series.time_ns, series.last
    single = (series.min == series.max) & (series.max == series.last)
    before = np.concatenate((series.min[:1], series.last[:-1]))
    # The extreme closer to the previous value comes first: fewer strokes across the bucket.
    falls_first = np.abs(series.min - before) < np.abs(series.max - before)
    first = np.where(falls_first, series.min, series.max)
    second = np.where(falls_first, series.max, series.min)
    times = series.time_ns[:, None] + np.array([0, series.width_ns // 3, 2 * series.width_ns // 3])
    values = np.stack((first, second, series.last), axis=1)
    kept = np.ones(values.shape, dtype=bool)
    kept[single, 1:] = False
    return times[kept], values[kept]


def thin(times: Values, values: Values, points: int) -> tuple[Values, Values]:
    """Select at most this many points: the first, last, minimum and maximum of each stretch."""
    if len(times) <= points:
        return times, values
    from tsdownsample import M4Downsampler

    chosen = M4Downsampler().downsample(
        np.ascontiguousarray(times), np.ascontiguousarray(values), n_out=max(points // 4 * 4, 4)
    )
    return times[chosen], values[chosen]


def spread(times: Values, values: Values, points: int) -> tuple[Values, Values]:
    """Select at most this many points, evenly spread and with the extremes, for points drawn as separate marks."""
    if len(times) <= points:
        return times, values
    from tsdownsample import MinMaxLTTBDownsampler

    chosen = MinMaxLTTBDownsampler().downsample(
        np.ascontiguousarray(times), np.ascontiguousarray(values), n_out=max(points, 4)
    )
    return times[chosen], values[chosen]


def compact(values: Values) -> Values:
    """Return the same numbers in the smallest type that holds them exactly: integers in four, two or one bytes."""
    if values.dtype.kind not in "iu" or not len(values):
        return values
    least, most = int(values.min()), int(values.max())
    for kind in _WHOLE:
        if np.iinfo(kind).min <= least and most <= np.iinfo(kind).max:
            return values.astype(kind)
    return values.astype(np.float64)


def curve(
    request: Request,
    series: Series,
    name: str,
    colour: str,
    *,
    unit: str = "B",
    scale: float = 1.0,
    shape: str = "hv",
    dash: str = "solid",
    width: float = 1.5,
    **more: Any,
) -> list[Trace]:
    """Draw a series as a line; return nothing if it is empty.

    Args:
        scale: factor of the values, such as 1e-6 from nanoseconds to milliseconds.
        shape: ``hv`` for values that hold until they change, ``linear`` for samples.
    """
    times, values = points_of(series)
    if not len(times):
        return []
    if shape == "hv" and times[-1] < request.end_ns:
        times, values = np.append(times, request.end_ns), np.append(values, values[-1])
    times, values = thin(times, values, request.points)
    shown = compact(values) if scale == 1.0 else (values * scale).astype(np.float32)
    number = "%{y:,d} B (%{y:.3s}B)" if unit == "B" else f"%{{y:,.3f}} {unit}"
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            "x": _places(request, times, series.width_ns),
            "y": shown,
            "line": {"color": colour, "shape": shape, "dash": dash, "width": width},
            "hovertemplate": f"{number} at %{{x:.6f}} s<extra>{name}</extra>",
            **more,
        }
    ]


def frames(
    request: Request,
    series: Series,
    side: str,
    name: str,
    colour: str,
    *,
    with_data: bool,
    column: str | None = None,
    unit: str = "B",
) -> list[Trace]:
    """Draw a dot on the curve for each segment of a side, with its frame; return nothing if they are too many.

    Args:
        column: the column of the segments' table that has the value just after each segment. A curve has one value per
            instant.
    """
    rows = request.rows
    if rows is None or not len(series):
        return []
    sent = np.asarray(rows["direction"]) == side
    if with_data:
        sent &= np.asarray(rows["length"]) > 0
    times = np.asarray(rows["time_ns"])[sent]
    heights, known = value_at(series, times)
    if not known.any():
        return []
    if column is not None:
        heights = _own_values(series, times, heights, rows[column][sent])
    shown = (np.asarray(rows[column])[sent][known].astype(np.int32) for column in ("frame", "length"))
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": name,
            "legendgroup": name,
            "showlegend": False,
            "x": request.seconds(times[known]),
            "y": compact(heights[known]),
            "customdata": np.stack(tuple(shown), axis=1),
            "marker": {"color": colour, "size": 5},
            "hovertemplate": f"<b>frame %{{customdata[0]:,d}}</b>, %{{customdata[1]:,d}} B of data<br>%{{y:,d}} {unit} "
            f"at %{{x:.6f}} s<extra>{name}</extra>",
        }
    ]


def _own_values(series: Series, times: NDArray[np.int64], heights: NDArray[np.int64], own: Values) -> NDArray[np.int64]:
    """Return each segment's own value if the curve had it in the segment's bucket; otherwise the curve's."""
    places = np.maximum(np.searchsorted(series.time_ns, times, side="right") - 1, 0)
    values = np.where(np.ma.getmaskarray(own), -1, np.asarray(own).astype(np.int64))
    return np.where((values >= series.min[places]) & (values <= series.max[places]), values, heights)


def _places(request: Request, times: NDArray[np.int64], width_ns: int) -> Values:
    """Return seconds on the axis, in four bytes if these are finer than a bucket."""
    seconds: Values = request.seconds(times)
    is_coarse = float(np.abs(seconds).max()) * 1e9 / (1 << 24) < width_ns / 8
    return seconds.astype(np.float32) if is_coarse else seconds


def value_at(series: Series, times: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the value in force at each time, and whether there was one."""
    if not len(series):
        return np.zeros(len(times), dtype=np.int64), np.zeros(len(times), dtype=bool)
    places = np.searchsorted(series.time_ns, times, side="right") - 1
    return series.last[np.maximum(places, 0)], places >= 0
