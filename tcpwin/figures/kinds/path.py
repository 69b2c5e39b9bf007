"""What the path gives, and whether the connection took all of it: rate, bytes in flight and queue under each other.

A path has two limits (Kleinrock 1979; Cardwell and others, "BBR", 2016): the rate of its bottleneck, and the time that
there and back takes when nothing waits. Less in flight than their product leaves the path idle; more waits in a queue.

- **Delivery rate**: what was delivered, by round trip. Dashed is **the path's rate**, where the packets show one
  (`path_rate_bps`). A curve along the line: the path is full. A curve below it: something else limits.
- **In flight**, with the receive window: dotted is what **fills the path**, its rate times the least round trip. Flight
  far above it is a queue; flight below it, with the window right above, is the window's doing.
- **Waiting in queues**: by how much round trips were longer than the least. It stands high where a queue never empties
  (a full path, a bloated one), and lies at nothing under losses at random, a policer or a small window.
- **sent again**: losses, at the height of the flight: after each fill of the queue where it overflows, anywhere where
  they are random.
- Shaded: time with the window closed, stalls and pauses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpwin.figures.drawing.curve import curve, value_at
from tcpwin.figures.drawing.kind import FigureKind, Nothing
from tcpwin.figures.drawing.marker import markers
from tcpwin.figures.drawing.panel import Panel
from tcpwin.figures.drawing.span import stalls, zero_windows
from tcpwin.figures.drawing.theme import BYTES_AXIS, COLOURS, MS_AXIS, RATE_AXIS
from tcpwin.figures.kinds.window import seen_flight
from tcpwin.units import bytes_text, rate_text, share_text, time_text

if TYPE_CHECKING:
    from tcpwin.analysis import Series
    from tcpwin.figures.drawing.panel import Trace
    from tcpwin.figures.drawing.request import Request

FAR = 3
"""Times what is in flight: what lies further above would press it flat, and begins out of view."""
FAR_FILL = 6
"""The same of what fills the path: how far the flight stays below it is what the picture tells."""
FAR_RATE = 30
"""Times the usual rate: a path's rate below that stays in view, for the distance to it is what the picture tells."""
INSTANT_SHARE = 0.01
"""Of the time: a rate that lasted for less, as that of a last round cut short, is not the usual one."""


def draw(request: Request) -> Panel:
    """Rate, flight and queue of one direction."""
    delivered = request.series("delivery_rate")
    if not len(delivered):
        raise Nothing("no round trip with several segments in flight was captured, which would tell of the path")
    rate_bps = request.facts.path_rate_bps
    panel = Panel(y={**RATE_AXIS, "rangemode": "tozero"}, heading="Delivery rate", notes=_answer(request, rate_bps))
    panel.traces += curve(request, delivered, "delivery rate", COLOURS["goodput"], unit="bit/s", width=2)
    if rate_bps is not None:
        panel.traces += _limit(request, rate_bps, "path's rate", "dash", f"{rate_text(rate_bps)}: the path's rate")
    _keep_in_view(panel, request, delivered, rate_bps or 0.0)
    panel.shades = [*stalls(request), *zero_windows(request)]
    panel.below = [_flight(request, rate_bps), *_queue(request)]
    return panel


def _keep_in_view(panel: Panel, request: Request, delivered: Series, rate_bps: float) -> None:
    """Let neither a rate of an instant, nor a path that gives many times as much, press the curve onto its axis."""
    lasted_ns = np.diff(delivered.time_ns, append=max(request.end_ns, int(delivered.time_ns[-1])))
    order = np.argsort(delivered.max)
    over_ns = int(lasted_ns.sum()) - np.cumsum(lasted_ns[order])
    usual_bps = float(delivered.max[order][np.argmax(over_ns <= INSTANT_SHARE * lasted_ns.sum())])
    highest_bps = float(delivered.max.max())
    named = {"the path's rate": (rate_bps, FAR_RATE), "a rate of an instant": (highest_bps, FAR)}
    far = {name: bps for name, (bps, times) in named.items() if bps > times * usual_bps > 0}
    if far:
        near_bps = max(usual_bps, *(bps for name, (bps, _) in named.items() if name not in far), 0.0)
        panel.y = {**panel.y, "range": [0, 1.1 * near_bps]}
        panel.notes.append(f"Out of view: {'; '.join(f'{name}, {rate_text(bps)}' for name, bps in far.items())}")


def _answer(request: Request, rate_bps: float | None) -> list[str]:
    """The picture in two sentences: what limited the direction, and what the path has to do with it."""
    facts = request.facts
    life_ns = request.connection.duration_ns
    verdict = request.connection.verdicts[request.direction]
    if rate_bps is None:
        return [verdict.headline, "What the path gives did not show: it was never filled"]
    full = share_text((facts.budget_path_ns + facts.budget_policer_ns) / life_ns if life_ns else 0.0)
    return [verdict.headline, f"Path full for {full} of the time; it gives {rate_text(rate_bps)}"]


def _flight(request: Request, rate_bps: float | None) -> Panel:
    panel = Panel(y={**BYTES_AXIS, "rangemode": "tozero"}, heading="In flight")
    flight, window = seen_flight(request), request.series("receive_window")
    most = int(flight.max.max()) if len(flight) else 0
    if request.facts.view != "sender":
        panel.notes.append("In flight, less what waits in queues before the capture")
    if len(window):
        panel.traces += curve(request, window, "receive window", COLOURS["receive window"], width=2.4)
    panel.traces += curve(request, flight, "in flight", COLOURS["flight"], width=1.3)
    trip_ns = _least_round_trip(request)
    fill = rate_bps * trip_ns / 8e9 if rate_bps is not None and trip_ns else 0.0
    if fill:
        said = f"{bytes_text(round(fill))}: the path's rate for {time_text(trip_ns)}"
        panel.traces += _limit(request, fill, "fills the path", "dot", said)
    offered = int(window.max.max()) if len(window) else 0
    named = {"the window": (offered, FAR), "what fills the path": (round(fill), FAR_FILL)}
    far = {name: high for name, (high, times) in named.items() if high > times * most > 0}
    if far:
        near = [high for name, high in (("the window", offered), ("what fills the path", fill)) if name not in far]
        panel.y = {**panel.y, "range": [0, 1.2 * max(most, *near, 0)]}
        panel.notes.append(f"Out of view: {'; '.join(f'{name}, {bytes_text(high)}' for name, high in far.items())}")
    resent = np.flatnonzero(request.events.sent_by(request.sender) & request.events.resent())
    heights, _ = value_at(flight, request.events.time_ns[resent])
    panel.traces += markers(request, resent, heights, "sent again", COLOURS["loss"], "x", notes=panel.notes)
    return panel


def _queue(request: Request) -> list[Panel]:
    waited = request.series("queue_delay")
    if not len(waited):
        return []
    panel = Panel(y={**MS_AXIS, "rangemode": "tozero"}, heading="Waiting in queues", weight=0.7)
    trip_ns = _least_round_trip(request)
    if trip_ns:
        # A wait is long or short beside the way itself.
        panel.y = {**panel.y, "range": [0, 1.1e-6 * max(trip_ns, int(waited.max.max()))]}
        panel.notes.append(f"beyond {time_text(trip_ns)}")
    panel.traces += curve(
        request, waited, "wait in queues", COLOURS["round trip"], unit="ms", scale=1e-6, width=1.8, fill="tozeroy"
    )
    return [panel]


def _least_round_trip(request: Request) -> int:
    """Of the whole path, as far as it is known where the capture was made."""
    return request.connection.path_rtt_ns or request.facts.rtt_min_ns or 0


def _limit(request: Request, height: float, name: str, dash: str, said: str) -> list[Trace]:
    """A line across the picture, with a colour of its name's."""
    ends = np.array([request.start_ns, request.end_ns])
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            "x": request.seconds(ends),
            "y": np.array([height, height]),
            "line": {"color": COLOURS[name], "dash": dash, "width": 1.8 if dash == "dash" else 2.4},
            "hovertemplate": f"{said}<extra>{name}</extra>",
        }
    ]


FIGURE = FigureKind(
    name="path",
    title="The path and its queue",
    scope="connection",
    page=__doc__ or "",
    draw=draw,
    limits=frozenset({"path_rate", "path_policer", "path_loss"}),
    order=15,
)
