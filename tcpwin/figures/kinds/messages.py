"""Message and answer times: median, 95th and 99th percentile.

- **message**: from the first byte of a message to the arrival of its last, as defined on the page on messages. The
  median of bulk transfers is their duration.
- **first byte**: from the other side's last data to the first byte of the answer, at the capture point: near the
  server it is the server's own time, near the client it includes a round trip.

Both directions are drawn if both have messages. The axis is logarithmic if the values differ widely. A percentile of
few messages is one of them: the label gives the number of messages, or of answers, as n.
"""

from __future__ import annotations

from math import floor, log10
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpwin.figures.drawing.kind import FigureKind, Nothing
from tcpwin.figures.drawing.panel import Panel
from tcpwin.figures.drawing.theme import COLOURS, SECONDS_AXIS, log_axis, pattern_fill
from tcpwin.limits import way_of
from tcpwin.units import time_text

if TYPE_CHECKING:
    from tcpwin.analysis import Direction
    from tcpwin.figures.drawing.panel import Trace
    from tcpwin.figures.drawing.request import Request

SHARES = (("p50", "half"), ("p95", "95 %"), ("p99", "99 %"))
FLAT_GROUPS = 2
"""Maximum number of groups whose times fit side by side on a phone; more are written vertically."""
LOGARITHMIC = 50
"""Ratio of the largest to the smallest value above which the axis is logarithmic."""


def draw(request: Request) -> Panel:
    """Draw bars by percentile, in groups by direction and kind."""
    groups: list[tuple[str, list[float]]] = []
    for name in ("a_to_b", "b_to_a"):
        facts: Direction = getattr(request.connection, name)
        for kind, count in (("message_delay", facts.messages), ("first_byte", facts.turns)):
            values = [getattr(facts, f"{kind}_{share}_ns") for share, _ in SHARES]
            if count and None not in values:
                what = "messages" if kind == "message_delay" else "first byte"
                # With a noun after each number, the labels of four groups would overlap on a phone.
                label = f"{what}<br>{way_of(request.connection, name)}<br>n={count:,}"
                groups.append((label, [value / 1e9 for value in values]))
    if not groups:
        raise Nothing("no message was captured whose first and last byte are known")
    amounts = [value for _, values in groups for value in values if value > 0]
    is_upright = len(groups) > FLAT_GROUPS
    y: dict[str, Any] = {**SECONDS_AXIS, "rangemode": "tozero"}
    if amounts and max(amounts) / min(amounts) > LOGARITHMIC:
        span = max(amounts) / min(amounts)
        y |= log_axis(min(amounts), max(amounts), above=2 * span**0.3 if is_upright else 2)
        if max(amounts) > 10:
            powers = range(floor(log10(min(amounts))), 7)
            y |= {"tickmode": "array", "tickvals": [10.0**each for each in powers], "ticktext": [*map(_power, powers)]}
    elif amounts and is_upright:
        y |= {"range": [0, 1.35 * max(amounts)]}
    if amounts and max(amounts) >= 1000:
        y["tickformat"] = ",~r"
    panel = Panel(
        y=y,
        x={"type": "category", "showgrid": False, "tickangle": 0},
        layout={"barmode": "group", "bargap": 0.25, "bargroupgap": 0.05},
    )
    panel.traces = [_bars(request, groups, place) for place in range(len(SHARES))]
    return panel


def _power(exponent: int) -> str:
    """Return a power of ten of seconds as text; thousands of seconds have no prefix, as ks is unusual."""
    prefix, digits = next(each for each in (("", 0), ("m", -3), ("µ", -6), ("n", -9)) if exponent >= each[1])
    return f"{10 ** (exponent - digits):,} {prefix}s"


def _bars(request: Request, groups: list[tuple[str, list[float]]], place: int) -> Trace:
    colours = (COLOURS["round trip"], COLOURS["smoothed"], COLOURS["timeout"])
    share, words = SHARES[place]
    return {
        "type": "bar",
        "name": share,
        "x": [label for label, _ in groups],
        "y": np.array([values[place] for _, values in groups], dtype=np.float64),
        "marker": pattern_fill(("", "/", "x")[place], colours[place], request.theme.background),
        "text": [time_text(round(values[place] * 1e9)) for _, values in groups],
        "textposition": "outside",
        "textangle": -90 if len(groups) > FLAT_GROUPS else 0,
        "constraintext": "none",
        "textfont": {"size": 10},
        "cliponaxis": False,
        "hovertemplate": f"{words} took at most %{{y:.4s}}s<extra>{share}</extra>",
    }


FIGURE = FigureKind(
    name="messages",
    title="Message and answer delays",
    scope="connection",
    page=__doc__ or "",
    draw=draw,
    has_directions=False,
    has_time_axis=False,
    order=80,
)
