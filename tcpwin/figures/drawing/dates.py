"""Show dates on time axes of hours and more, where seconds are unreadable.

In: a figure whose horizontal axis is seconds since the connection began. Out: the same figure in UTC by the capture's
clock.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tcpwin.figures.drawing.panel import Trace
    from tcpwin.figures.drawing.request import Request

LEAST_NS = 7_200 * 10**9
"""Shortest span with dates; shorter ones count seconds."""
_SECONDS = re.compile(r"%\{x:\.6f\} s")
_DATE = "%{x|%Y-%m-%d %H:%M:%S.%6f}"
_OF_NUMBERS = ("exponentformat", "separatethousands", "ticksuffix")


def with_dates(request: Request, figure: dict[str, Any]) -> dict[str, Any]:
    """Return the figure with dates if its span is long enough, otherwise unchanged."""
    if request.end_ns - request.start_ns < LEAST_NS:
        return figure
    origin_ms = request.origin_ns / 1e6
    layout = figure["layout"]
    axis = {name: value for name, value in layout["xaxis"].items() if name not in _OF_NUMBERS}
    axis |= {
        "type": "date",
        "title": {**axis["title"], "text": axis["title"]["text"].replace("since", "UTC, began")},
        "range": [origin_ms + 1e3 * each for each in axis["range"]],
        "hoverformat": "%Y-%m-%d %H:%M:%S.%3f",
    }
    axis["title"]["text"] = axis["title"]["text"].removesuffix(" UTC")
    marked: dict[str, Any] = {
        name: [_moved(each, origin_ms) for each in layout[name]] for name in ("shapes", "annotations") if name in layout
    }
    return {
        "data": [_dated(each, origin_ms) for each in figure["data"]],
        "layout": {**layout, **marked, "xaxis": axis},
    }


def _moved(mark: dict[str, Any], origin_ms: float) -> dict[str, Any]:
    places = ("x", "x0", "x1") if mark["xref"] == "x" else ()
    return {name: origin_ms + 1e3 * value if name in places else value for name, value in mark.items()}


def _dated(trace: Trace, origin_ms: float) -> Trace:
    """Return milliseconds since 1970, which plotly reads as dates in UTC; bar widths in milliseconds."""
    moved = {**trace, "x": origin_ms + 1e3 * np.asarray(trace["x"], dtype=np.float64)}
    if "width" in trace:
        moved["width"] = (1e3 * trace["width"]).astype(trace["width"].dtype)
    if "hovertemplate" in trace:
        moved["hovertemplate"] = _SECONDS.sub(_DATE, trace["hovertemplate"])
    return moved
