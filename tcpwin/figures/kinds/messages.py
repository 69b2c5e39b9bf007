"""How long messages and answers took: half of them, 95 % and 99 % of them.

- **message**: from the first byte of a message to its last byte's arrival, as the page on messages tells it. The median
  of bulk transfers is their duration.
- **first byte**: from the other side's last data to the first byte of the answer, at the capture point: near the
  server that is its own time, near the client it has a round trip in it.

Both directions are drawn where both have messages. The axis is logarithmic where the values ask for it. A percentile of
few messages is one of them: the number of messages, or of answers, stands in the label as n.
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
"""With more, a phone has no room for times beside each other: they stand upright, for which the axis leaves room."""
LOGARITHMIC = 50
"""Ratio of the largest to the least value beyond which small ones could not be read."""


def draw(request: Request) -> Panel:
    """Bars by share, in groups by direction and kind."""
    groups: list[tuple[str, list[float]]] = []
    for name in ("a_to_b", "b_to_a"):
        facts: Direction = getattr(request.connection, name)
        for kind, count in (("message_delay", facts.messages), ("first_byte", facts.turns)):
            values = [getattr(facts, f"{kind}_{share}_ns") for share, _ in SHARES]
            if count and None not in values:
                what = "messages" if kind == "message_delay" else "first byte"
                # With their noun the numbers of four groups would run into each other on a phone.
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
    """A power of ten of seconds; of a thousand seconds nobody says 1 ks."""
    prefix, digits = next(each for each in (("", 0), ("m", -3), ("µ", -6), ("n", -9)) if exponent >= each[1])
    return f"{10 ** (exponent - digits):,}{prefix}s"


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
        "hovertemplate": f"{words} took no longer than %{{y:.4s}}s<extra>{share}</extra>",
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
