"""Round trips of the ACKs, the smoothed round trip, and the retransmission timeout.

- **round trip**: from a segment to its ACK, for each ACK, **at the capture point**: away from the sender, it lacks the
  path between the sender and the capture point, as noted under the title. Retransmissions are not timed (Karn,
  RFC 6298 §3).
- **smoothed**: SRTT as in Linux (RFC 6298, tcp_rtt_estimator). A round trip that grows while data is in flight is a
  queue on the path.
- **RTO**: the timeout of a Linux sender at that time, back-off included. If it never fired and is far above, the figure
  begins without it; double-click to show it.
- **rtt (ss)**: the smoothed round trip of the sender's kernel, if it was sampled.
- **timeout**: segments that the timer sent, at the height of the sender's timeout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpwin.figures.drawing.curve import curve, points_of, spread, thin
from tcpwin.figures.drawing.kind import FigureKind, Nothing
from tcpwin.figures.drawing.marker import markers
from tcpwin.figures.drawing.panel import Panel
from tcpwin.figures.drawing.sockets import MARKS, socket_values
from tcpwin.figures.drawing.theme import COLOURS, MS_AXIS
from tcpwin.units import time_text

if TYPE_CHECKING:
    from tcpwin.analysis import Series, SeriesName
    from tcpwin.figures.drawing.panel import Trace
    from tcpwin.figures.drawing.request import Request

FAR = 5
"""Multiple of the largest round trip above which the timeout starts out of view."""
SAME_HOST = "Captured on the host of both ends: round trips lack the sender's own side, which is negligible."
PLACES = {
    "receiver": "Captured near the receiver: round trips lack the path to the sender.",
    "between": "Captured in between: round trips lack the path to the sender.",
    "unknown": "Capture point unknown: round trips may lack the path to the sender.",
}


def draw(request: Request) -> Panel:
    """Draw one direction's round trips."""
    panel = Panel(y={**MS_AXIS, "rangemode": "tozero"})
    samples = request.series("rtt")
    if not len(samples):
        raise Nothing("no segment of this direction was captured together with its ACK")
    panel.traces.append(_round_trips(request, samples))
    beside: tuple[tuple[SeriesName, str, str, str], ...] = (
        ("rtt_smoothed", "smoothed", "smoothed", "solid"),
        ("rto", "RTO", "timeout", "dash"),
    )
    for name, words, colour, dash in beside:
        panel.traces += curve(request, request.series(name), words, COLOURS[colour], unit="ms", scale=1e-6, dash=dash)
    panel.traces += _kernel_srtt(request)
    timeouts = _timeouts(request, panel.notes)
    if not timeouts:
        _look_at_round_trips(panel)
    panel.traces += timeouts
    place = PLACES.get(request.facts.view)
    if request.connection.a.address == request.connection.b.address:
        place = SAME_HOST
    if place is not None:
        panel.notes.append(place)
    return panel


def _look_at_round_trips(panel: Panel) -> None:
    """Begin with the round trips in view if a timeout far above, which never fired, would flatten them."""
    heights = {each["name"]: float(np.max(each["y"])) for each in panel.traces}
    timeout = heights.pop("RTO", 0.0)
    most = max(heights.values())
    if 0 < most * FAR < timeout:
        panel.y = {**panel.y, "range": [0, 1.1 * most]}
        panel.notes.append(f"RTO far above, at most {time_text(round(timeout * 1e6))}: double-click to show it")


def _round_trips(request: Request, samples: Series) -> Trace:
    """Draw a dot for each ACK, with its frame, if there are few; otherwise the extremes of each bucket."""
    more: dict[str, Any] = {}
    frame = ""
    rows = request.rows
    if rows is not None:
        timed = (np.asarray(rows["direction"]) == request.receiver) & ~np.ma.getmaskarray(rows["rtt_ns"])
        times, values = np.asarray(rows["time_ns"])[timed], np.asarray(rows["rtt_ns"])[timed].astype(np.int64)
        more = {"customdata": np.asarray(rows["frame"])[timed].astype(np.int32)}
        frame = "<b>frame %{customdata:,d}</b>: "
    else:
        times, values = thin(*points_of(samples), request.points)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "round trip",
        "x": request.seconds(times),
        "y": (values / 1e6).astype(np.float32),
        "marker": {"color": COLOURS["round trip"], "size": 4, "opacity": 0.75},
        "hovertemplate": f"{frame}%{{y:,.3f}} ms at %{{x:.6f}} s<extra>round trip</extra>",
        **more,
    }


def _kernel_srtt(request: Request) -> list[Trace]:
    """Draw the kernel's own smoothed round trip."""
    times, values = spread(*socket_values(request, request.sender, "rtt_ns"), MARKS)
    if not len(times):
        return []
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": "rtt (ss)",
            "x": request.seconds(times),
            "y": (values / 1e6).astype(np.float32),
            "marker": {"color": COLOURS["smoothed"], "symbol": "diamond-open", "size": 5},
            "hovertemplate": "%{y:,.3f} ms at %{x:.6f} s<extra>rtt (ss)</extra>",
        }
    ]


def _timeouts(request: Request, notes: list[str]) -> list[Trace]:
    events = request.events
    fired = events.sent_by(request.sender) & events.named("rto_retransmission") & (events.rto_ns >= 0)
    places = np.flatnonzero(fired)
    return markers(
        request,
        places,
        events.rto_ns[places] / 1e6,
        "timeout",
        COLOURS["timeout"],
        "x",
        height_format="timeout of %{y:,.3f} ms",
        notes=notes,
    )


FIGURE = FigureKind(
    name="rtt",
    title="Round trip and timeout",
    scope="connection",
    page=__doc__ or "",
    draw=draw,
    is_in_timeline=True,
    order=40,
)
