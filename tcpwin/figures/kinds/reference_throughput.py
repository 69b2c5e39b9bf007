"""The rate of acknowledged data next to that of the nearest reference run, on the same axes.

The run is the one of *reference-window*. Both rates are payload acknowledged for the first time:

- **your goodput**: as in the figure *throughput*, the mean over each second, or over each 240th of the connection's
  lifetime if that is longer: the note then gives the interval.
- **the run's goodput**, dashed: the mean between two samples of its sender's kernel (`ss`: ``bytes_acked``), drawn
  from the first to the second. The published reader reads as fast as it can in five of twenty seconds.

Both begin at 0, the first segment of each connection. If one side is ten times the other, the axis is logarithmic;
a rate of 0 is then at its lower edge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpwin.figures.drawing.beside import find_beside, log_if_far_apart, rates_of
from tcpwin.figures.drawing.kind import FigureKind, Nothing
from tcpwin.figures.drawing.panel import Panel
from tcpwin.figures.drawing.theme import COLOURS, RATE_AXIS
from tcpwin.figures.kinds.throughput import INTERVALS, steps
from tcpwin.units import time_text

if TYPE_CHECKING:
    from tcpwin.figures.drawing.request import Request

SECOND_NS = 1_000_000_000


def draw(request: Request) -> Panel:
    """Draw two curves."""
    beside = find_beside(request)
    request = beside.request
    goodput = request.series("goodput")
    if not len(goodput) or request.end_ns <= request.start_ns:
        raise Nothing("no acknowledged data of this direction was captured")
    # Whole buckets of at least a second, like the intervals of the run's samples.
    wanted_ns = max(SECOND_NS, (request.end_ns - request.start_ns) // INTERVALS)
    interval_ns = -(-wanted_ns // goodput.width_ns) * goodput.width_ns
    _, rates = rates_of(beside.trace)
    yours = steps(request, goodput, interval_ns, "your goodput", COLOURS["goodput"], "solid", 2.4)
    theirs = beside.curve(rates.tolist(), "the run's goodput", COLOURS["goodput"], unit="bit/s", shape="vh")
    panel = Panel(y={**RATE_AXIS, "rangemode": "tozero"}, x=beside.x, traces=[yours, theirs])
    panel.notes.append(f"Dashed: {beside.name}")
    if interval_ns > SECOND_NS:
        panel.notes.append(f"Yours: mean of {time_text(interval_ns)}")
    log_if_far_apart(panel, [[yours], [theirs]], RATE_AXIS)
    return panel


FIGURE = FigureKind(
    name="reference-throughput",
    title="Rate and reference",
    scope="connection",
    page=__doc__ or "",
    draw=draw,
    has_directions=False,
    has_fields=True,
    order=81,
)
