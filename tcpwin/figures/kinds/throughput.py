"""The rates of data sent, acknowledged for the first time, and retransmitted.

- **throughput**: payload bits sent per second, retransmissions included.
- **goodput**: payload bits acknowledged for the first time per second. It lags the throughput by a round trip.
- **retransmitted**: payload bits per second that had been sent before.

Each step is the mean over an interval: the same for the whole figure, named under the title, and at least a round trip
if enough of them fit, as a window-limited sender sends in bursts a round trip apart. The last interval ends with the
figure and is half to one and a half times as long. The sum over all intervals is exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpwin.figures.drawing.kind import FigureKind, Nothing
from tcpwin.figures.drawing.panel import Panel
from tcpwin.figures.drawing.theme import COLOURS, RATE_AXIS
from tcpwin.units import time_text

if TYPE_CHECKING:
    from tcpwin.analysis import Series, SeriesName
    from tcpwin.figures.drawing.panel import Trace
    from tcpwin.figures.drawing.request import Request

DRAWN: dict[SeriesName, tuple[str, str, str, float]] = {
    "throughput": ("throughput", COLOURS["throughput"], "solid", 2.6),
    "goodput": ("goodput", COLOURS["goodput"], "solid", 1.3),
    "resent": ("retransmitted", COLOURS["loss"], "dot", 1.5),
}
"""Series with legend name, colour, dash and width: thin over thick, so that both are visible where they coincide."""
INTERVALS = 240
"""Maximum number of intervals of a figure."""
LEAST_INTERVALS = 40
"""Minimum number of intervals: below this number, an interval may be shorter than a round trip."""


def draw(request: Request) -> Panel:
    """Draw the rates of one direction."""
    found = [(request.series(name), name) for name in DRAWN]
    found = [each for each in found if len(each[0])]
    if not found:
        raise Nothing("no data of this direction was captured")
    if request.end_ns <= request.start_ns:
        raise Nothing("all of it has the same timestamp, so there is no rate")
    interval_ns = _interval_ns(request, [series for series, _ in found])
    panel = Panel(y={**RATE_AXIS, "rangemode": "tozero"}, notes=[f"Steps of {time_text(interval_ns)}"])
    for series, of in found:
        name, colour, dash, width = DRAWN[of]
        panel.traces.append(steps(request, series, interval_ns, name, colour, dash, width))
    return panel


def _interval_ns(request: Request, series: list[Series]) -> int:
    """Return a multiple of every series' bucket length, so that each bucket falls into one interval."""
    width_ns = max(each.width_ns for each in series)
    span_ns = max(request.end_ns - request.start_ns, 1)
    facts = request.facts
    trip_ns = facts.sender_rtt_smoothed_ns or facts.rtt_smoothed_ns or 0
    wanted_ns = max(span_ns // INTERVALS, min(trip_ns, span_ns // LEAST_INTERVALS), 1)
    if width_ns > 1:
        return -(-wanted_ns // width_ns) * width_ns
    step_ns = int(10 ** (len(str(wanted_ns)) - 1))
    return next(step_ns * each for each in (1, 2, 5, 10) if step_ns * each >= wanted_ns)


def steps(request: Request, series: Series, interval_ns: int, name: str, colour: str, dash: str, width: float) -> Trace:
    # Buckets lie on a grid from the span's start.
    places = np.maximum((series.time_ns - request.start_ns) // interval_ns, 0)
    count = int(max(places.max(), (request.end_ns - request.start_ns) // interval_ns)) + 1
    totals = np.bincount(places, weights=series.sum, minlength=count)
    edges = request.start_ns + np.arange(count + 1, dtype=np.int64) * interval_ns
    if count > 1 and (request.end_ns - edges[-2]) * 2 < interval_ns:
        # The remainder is too short for a rate: merge it with the interval before.
        totals, edges = np.append(totals[:-2], totals[-2:].sum()), np.delete(edges, -2)
    edges[-1] = max(request.end_ns, edges[-2] + 1)
    rates = totals * 8e9 / np.diff(edges)
    rates = np.append(rates, rates[-1:])
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": request.seconds(edges),
        "y": rates.astype(np.float32),
        "line": {"color": colour, "shape": "hv", "width": width, "dash": dash},
        "hovertemplate": f"%{{y:,.4~r}} bit/s from %{{x:.6f}} s, over {time_text(interval_ns)}<extra>{name}</extra>",
    }


FIGURE = FigureKind(
    name="throughput",
    title="Throughput and goodput",
    scope="connection",
    page=__doc__ or "",
    draw=draw,
    is_in_timeline=True,
    order=30,
)
