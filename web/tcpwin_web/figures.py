"""Spans of series in, a plotly figure as plain values out.

Bounded whatever the length, since a span is: three points a bucket.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tcpwin_web.results.queries import SeriesSpan

CURVES = {"receive_window": ("receive window", "#2563eb"), "flight": ("bytes in flight", "#c2410c")}
"""Series that are drawn: their names in the figure, and their colours."""


def draw_window_and_flight(spans: Sequence[SeriesSpan], start_ns: int) -> dict[str, Any]:
    """Draw what the receiver offers beside what the sender has outstanding; `spans` are those of `CURVES`."""
    return {
        "data": [
            _curve(span, start_ns, name, colour) for span, (name, colour) in zip(spans, CURVES.values(), strict=True)
        ],
        "layout": {
            "margin": {"l": 70, "r": 20, "t": 20, "b": 50},
            "legend": {"orientation": "h", "y": 1.12},
            "xaxis": {"title": {"text": "seconds since the connection began"}},
            "yaxis": {"title": {"text": "bytes"}, "rangemode": "tozero"},
        },
    }


def _curve(span: SeriesSpan, start_ns: int, name: str, colour: str) -> dict[str, Any]:
    """Draw each bucket as a stroke from its least to its greatest value, then hold its last value."""
    columns = span.columns
    values = np.stack((columns["min"], columns["max"], columns["last"]), axis=1)
    return {
        "type": "scatter",
        "x": np.repeat((columns["time_ns"] - start_ns) / 1e9, 3).tolist(),
        "y": values.ravel().tolist(),
        "name": name,
        "mode": "lines",
        "line": {"shape": "hv", "width": 1.5, "color": colour},
    }
