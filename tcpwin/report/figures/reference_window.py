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

import numpy as np

from tcpwin.report.figures._beside import find_beside
from tcpwin.report.figures._curve import curve
from tcpwin.report.figures._kind import FigureKind, Nothing
from tcpwin.report.figures._panel import Panel
from tcpwin.report.figures._theme import BYTES_AXIS, COLOURS, log_axis
from tcpwin.report.figures.window import seen_flight

if TYPE_CHECKING:
    from tcpwin.report.figures._panel import Trace
    from tcpwin.report.figures._request import Request

LOGARITHMIC = 10


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
    mine, run = _most(yours), _most(theirs)
    if mine and run and not 1 / LOGARITHMIC <= mine / run <= LOGARITHMIC:
        _to_logarithmic(panel)
    return panel


def _most(traces: list[Trace]) -> float:
    return max(float(np.max(each["y"])) for each in traces)


def _to_logarithmic(panel: Panel) -> None:
    every = np.concatenate([np.asarray(each["y"], dtype=np.float64) for each in panel.traces])
    least = float(every[every > 0].min())
    floor = least / 2
    for each in panel.traces:
        values = np.asarray(each["y"])
        each["y"] = np.where(values > 0, values, floor).astype(np.float64)
    panel.y = {**BYTES_AXIS, **log_axis(least, float(every.max()), below=2, above=2)}
    if (every <= 0).any():
        panel.notes.append("The axis is logarithmic: 0 stands at its lower edge")


FIGURE = FigureKind(
    name="reference-window",
    title="Window beside a reference",
    scope="connection",
    page=__doc__ or "",
    draw=draw,
    has_directions=False,
    order=80,
)
