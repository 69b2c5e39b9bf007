"""The rate of acknowledged data next to those of the lab's runs that fit, on the same axes.

The runs are those of `tcpwin reference --like`: the transfer *as you are*, *one change better*, and *as good as the
path gets*. All rates are payload acknowledged for the first time:

- **yours**: the mean over each second, or over each 40th of a lifetime below 40 s, or each 240th of a longer one.
- **the runs**: the mean over each 24th of a run's lifetime and at least a round trip, in the capture at its sender. A
  longer than the connection: compare the heights, and how fast each rises.

All begin at 0, the first segment of each connection. If one is ten times another, the axis is logarithmic; a rate of 0
is then at its lower edge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpwin.figures.drawing.beside import library_fits, log_if_far_apart, rates_of
from tcpwin.figures.drawing.kind import FigureKind, Nothing
from tcpwin.figures.drawing.panel import Panel
from tcpwin.figures.drawing.theme import COLOURS, RATE_AXIS, SERIES_COLOURS
from tcpwin.figures.kinds.throughput import INTERVALS, LEAST_INTERVALS, steps

if TYPE_CHECKING:
    from tcpwin.figures.drawing.request import Request

SECOND_NS = 1_000_000_000
RUN_COLOURS = [colour for colour in SERIES_COLOURS if colour != COLOURS["goodput"]]
DASHES = ("dash", "dot", "dashdot", "longdash")
"""Dash of each run, by its place, so that they differ without colour, too."""


def draw(request: Request) -> Panel:
    """Draw the connection's rate and one curve for each run."""
    request, fits = library_fits(request)
    goodput = request.series("goodput")
    span_ns = request.end_ns - request.start_ns
    if not len(goodput) or span_ns <= 0:
        raise Nothing("no acknowledged data of this direction was captured")
    wanted_ns = max(min(SECOND_NS, span_ns // LEAST_INTERVALS), span_ns // INTERVALS, 1)
    interval_ns = -(-wanted_ns // goodput.width_ns) * goodput.width_ns
    yours = steps(request, goodput, interval_ns, "yours", COLOURS["goodput"], "solid", 2.4)
    traces = [yours]
    last_s = request.seconds(request.end_ns)
    for place, fit in enumerate(fits.found):
        times, rates = rates_of(fit.run.trace, fit.run.rtt_ns)
        last_s = max(last_s, float(times[-1]))
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": fit.role,
                "x": times.astype(np.float32),
                "y": rates.astype(np.float32),
                "line": {"color": RUN_COLOURS[place], "dash": DASHES[place], "width": 1.8, "shape": "vh"},
                "hovertemplate": f"%{{y:,.4~r}} bit/s at %{{x:.3f}} s<extra>{fit.role}: {fit.run.full_name}</extra>",
            }
        )
    first_s = request.seconds(request.start_ns)
    margin = (last_s - first_s) * 0.01 or 0.5
    axis = {
        "title": {"text": "since each began", "font": {"size": 12}, "standoff": 8},
        "ticksuffix": " s",
        "range": [first_s - margin, last_s + margin],
        "hoverformat": ".6f",
    }
    panel = Panel(y={**RATE_AXIS, "rangemode": "tozero"}, x=axis, traces=traces)
    log_if_far_apart(panel, [[each] for each in traces], RATE_AXIS)
    return panel


FIGURE = FigureKind(
    name="reference-runs",
    title="Rate and the lab's runs",
    scope="connection",
    page=__doc__ or "",
    draw=draw,
    has_directions=False,
    order=79,
)
