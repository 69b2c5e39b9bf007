"""The receive window and the bytes in flight next to those of the nearest reference run, on the same axes.

The run is the one that the verdict of the comparison names (`tcpwin reference --like`), or, if only a published figure
of it is known, the lab run most like it. Any other run can be drawn by name.

- **your window, your flight**: as in the figure *window*, of the compared direction.
- **window, flight** of the run, dashed: values of the sender's kernel (`ss`: ``snd_wnd``, and data sent but not yet
  acknowledged), with a mark at each sample; values between samples are unknown.
- Both begin at 0, the first segment of each connection, even if the capture begins later in its connection.
- If one side is ten times the other, the axis is logarithmic; a closed window is then at its lower edge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpwin.figures.drawing.beside import find_beside, log_if_far_apart
from tcpwin.figures.drawing.curve import curve
from tcpwin.figures.drawing.kind import FigureKind, Nothing
from tcpwin.figures.drawing.panel import Panel
from tcpwin.figures.drawing.theme import BYTES_AXIS, COLOURS
from tcpwin.figures.kinds.window import seen_flight

if TYPE_CHECKING:
    from tcpwin.figures.drawing.request import Request


def draw(request: Request) -> Panel:
    """Draw four curves."""
    beside = find_beside(request)
    request, trace = beside.request, beside.trace
    yours = [
        *curve(request, request.series("receive_window"), "your window", COLOURS["receive window"], width=2.4),
        *curve(request, seen_flight(request), "your flight", COLOURS["flight"], width=1.3),
    ]
    if not yours:
        raise Nothing("neither window nor data in flight is known for this direction")
    theirs = [
        beside.curve(trace.window_bytes, "the run's window", COLOURS["receive window"], unit="B"),
        beside.curve(trace.flight_bytes, "the run's flight", COLOURS["flight"], unit="B"),
    ]
    panel = Panel(y={**BYTES_AXIS, "rangemode": "tozero"}, x=beside.x, traces=[*yours, *theirs])
    panel.notes.append(f"Dashed: {beside.name}")
    log_if_far_apart(panel, [yours, theirs], BYTES_AXIS)
    return panel


FIGURE = FigureKind(
    name="reference-window",
    title="Window and reference",
    scope="connection",
    page=__doc__ or "",
    draw=draw,
    has_directions=False,
    has_fields=True,
    order=80,
)
