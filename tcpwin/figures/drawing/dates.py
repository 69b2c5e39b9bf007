"""A time axis of hours and more has dates: nobody reads 302,400 seconds as three days and a half.

In: a figure whose horizontal axis is seconds since the connection began. Out: the same in UTC by the capture's clock.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tcpwin.figures.drawing.panel import Trace
    from tcpwin.figures.drawing.request import Request

LEAST_NS = 7_200 * 10**9
"""Of the shown span; below it seconds are counted."""
_SECONDS = re.compile(r"%\{x:\.6f\} s")
_DATE = "%{x|%Y-%m-%d %H:%M:%S.%6f}"
_OF_NUMBERS = ("exponentformat", "separatethousands")


def with_dates(request: Request, figure: dict[str, Any]) -> dict[str, Any]:
    """The figure with dates where its span is that long; else the figure itself."""
    if request.end_ns - request.start_ns < LEAST_NS:
        return figure
    origin_ms = request.origin_ns / 1e6
    layout = figure["layout"]
    axis = {name: value for name, value in layout["xaxis"].items() if name not in _OF_NUMBERS}
    axis |= {
        "type": "date",
        "title": {**axis["title"], "text": axis["title"]["text"].replace("s since", "UTC, began")},
        "range": [origin_ms + 1e3 * each for each in axis["range"]],
        "hoverformat": "%Y-%m-%d %H:%M:%S.%3f",
    }
    axis["title"]["text"] = axis["title"]["text"].removesuffix(" UTC")
    return {
        "data": [_dated(each, origin_ms) for each in figure["data"]],
        "layout": {**layout, "xaxis": axis},
    }


def _dated(trace: Trace, origin_ms: float) -> Trace:
    """Milliseconds since 1970, which plotly takes for dates in UTC; widths of bars in milliseconds."""
    moved = {**trace, "x": origin_ms + 1e3 * np.asarray(trace["x"], dtype=np.float64)}
    if "width" in trace:
        moved["width"] = (1e3 * trace["width"]).astype(trace["width"].dtype)
    if "hovertemplate" in trace:
        moved["hovertemplate"] = _SECONDS.sub(_DATE, trace["hovertemplate"])
    return moved
