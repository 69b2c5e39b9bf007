"""The receive window and the bytes in flight beside those of the reference's run that is near, on the same axes.

The run is the one that the verdict of the comparison names (`tcpwin reference --like`), or, where only a published
figure of it is known, the one of the lab that is most like it. Another is drawn on demand, by its name.

- **your window, your flight**: as in the figure *window*, of the direction that was compared.
- **window, flight** of the run, dashed: what the sender's kernel said (`ss`: ``snd_wnd``, and what was sent and not yet
  acknowledged), a mark a sample; nothing is known between two.
- Both begin at 0, the first segment of each connection. A capture that begins later in its connection begins at 0 too.
- Where one side is ten times the other the axis is logarithmic; a closed window then stands at its lower edge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpwin.figures.drawing.beside import find_beside, show_both
from tcpwin.figures.drawing.curve import curve
from tcpwin.figures.drawing.kind import FigureKind, Nothing
from tcpwin.figures.drawing.panel import Panel
from tcpwin.figures.drawing.theme import BYTES_AXIS, COLOURS
from tcpwin.figures.kinds.window import seen_flight

if TYPE_CHECKING:
    from tcpwin.figures.drawing.request import Request


def draw(request: Request) -> Panel:
    """Four curves."""
    beside = find_beside(request)
    request, trace = beside.request, beside.trace
    yours = [
        *curve(request, request.series("receive_window"), "your window", COLOURS["receive window"], width=2.4),
        *curve(request, seen_flight(request), "your flight", COLOURS["flight"], width=1.3),
    ]
    if not yours:
        raise Nothing("no window in bytes and no data in flight is known of this direction")
    theirs = [
        beside.curve(trace.window_bytes, "the run's window", COLOURS["receive window"], unit="B"),
        beside.curve(trace.flight_bytes, "the run's flight", COLOURS["flight"], unit="B"),
    ]
    panel = Panel(y={**BYTES_AXIS, "rangemode": "tozero"}, x=beside.x, traces=[*yours, *theirs])
    panel.notes.append(f"Dashed: {beside.name}")
    show_both(panel, yours, theirs, BYTES_AXIS)
    return panel


FIGURE = FigureKind(
    name="reference-window",
    title="Window beside a reference",
    scope="connection",
    page=__doc__ or "",
    draw=draw,
    has_directions=False,
    has_fields=True,
    order=80,
)
