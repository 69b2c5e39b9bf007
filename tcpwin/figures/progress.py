"""Compare transfers: the bytes acknowledged of each over time, on the same axes.

In: for each transfer its name, times since its start, and the bytes acknowledged by then. Out: `data` and `layout` for
plotly, which `still` can also render.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tcpwin.figures.drawing.text import escape
from tcpwin.figures.drawing.theme import BYTES_AXIS, SERIES_COLOURS, axis, base_layout, find_theme

HEIGHT = 380
DASHES = ("solid", "dash", "dot")
WIDTHS = (2.6, 1.8, 2.2)


@dataclass(frozen=True, slots=True)
class Progress:
    """One transfer: payload acknowledged by a time since its first packet."""

    name: str
    time_ns: Sequence[int]
    sum_bytes: Sequence[int]


def plain_progress(transfers: Sequence[Progress], *, title: str, theme: str = "light") -> dict[str, Any]:
    """Draw transfers that begin at the same moment: the steeper, the faster.

    Args:
        transfers: at most three transfers, in the order of the legend.
        title: the figure's title.
        theme: ``light`` or ``dark``.

    Raises:
        ArgumentError: the theme is unknown.
    """
    colours = find_theme(theme)
    data = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": escape(each.name),
            "x": [time_ns / 1e9 for time_ns in each.time_ns],
            "y": list(each.sum_bytes),
            "line": {"color": colour, "width": width, "dash": dash, "shape": "hv"},
            "hovertemplate": f"%{{x:.4~g}} s  %{{y:.4s}}B<extra>{escape(each.name)}</extra>",
        }
        for each, colour, width, dash in zip(transfers, SERIES_COLOURS, WIDTHS, DASHES, strict=False)
    ]
    longest_s = max((each.time_ns[-1] for each in transfers if each.time_ns), default=0) / 1e9 or 1.0
    layout = {
        **base_layout(colours),
        "height": HEIGHT,
        "hovermode": "closest",
        "title": {
            "text": f"<b>{escape(title)}</b>",
            "font": {"size": 14},
            "x": 0,
            "xref": "container",
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "pad": {"l": 12, "t": 14},
        },
        "margin": {"l": 12, "r": 12, "t": 48, "b": 92},
        "legend": {
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 0,
            "yanchor": "bottom",
            "yref": "container",
            "font": {"size": 11},
        },
        "meta": {"legend_height": 19},
        "xaxis": axis(
            colours,
            title={"text": "since the first packet", "font": {"size": 12}, "standoff": 6},
            ticksuffix=" s",
            range=[0, longest_s * 1.02],
        ),
        "yaxis": axis(colours, title={"text": "acknowledged", "font": {"size": 12}}, rangemode="tozero", **BYTES_AXIS),
    }
    return {"data": data, "layout": layout}
