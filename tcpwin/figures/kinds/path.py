"""The path's capacity, and whether the connection used it: rate, bytes in flight and queue, one above the other.

A path has two limits (Kleinrock 1979; Cardwell and others, "BBR", 2016): the rate of its bottleneck, and its round-trip
time when no queue delays packets. A flight below their product leaves the path idle; the excess above it queues.

- **Delivery rate**: data delivered, by round trip. The dashed line is **the path's rate**, if the packets reveal it
  (`path_rate_bps`). A curve along the line: the path is full. A curve below it: something else limits.
- **In flight**, with the receive window: the dotted line is the flight that **fills the path**, its rate times the
  minimum round trip. A flight far above it is a queue; a flight below it, close under the window, is limited by the
  window.
- **Waiting in queues**: the excess of round trips over the minimum. It stays high if a queue never empties (a full path
  or a bloated buffer), and near zero under random loss, a policer or a small window.
- **retransmitted**: losses, at the height of the flight: after each fill of the queue if it overflows, anywhere if
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
"""Multiple of the flight above which a window starts out of view: it would flatten the curves."""
FAR_FILL = 6
"""The same for the flight that fills the path: the gap below it should stay visible."""
FAR_RATE = 30
"""The same for the path's rate and the usual rate."""
INSTANT_SHARE = 0.01
"""Minimum share of the time for a usual rate: shorter ones, such as of an incomplete last round, are ignored."""


def draw(request: Request) -> Panel:
    """Draw rate, flight and queue of one direction."""
    delivered = request.series("delivery_rate")
    if not len(delivered):
        raise Nothing("no round trip with several segments in flight was captured, so the path's rate is unknown")
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
    """Keep a momentary rate, or a path with many times the rate, from flattening the curve."""
    lasted_ns = np.diff(delivered.time_ns, append=max(request.end_ns, int(delivered.time_ns[-1])))
    order = np.argsort(delivered.max)
    over_ns = int(lasted_ns.sum()) - np.cumsum(lasted_ns[order])
    usual_bps = float(delivered.max[order][np.argmax(over_ns <= INSTANT_SHARE * lasted_ns.sum())])
    highest_bps = float(delivered.max.max())
    named = {"the path's rate": (rate_bps, FAR_RATE), "a momentary rate": (highest_bps, FAR)}
    far = {name: bps for name, (bps, times) in named.items() if bps > times * usual_bps > 0}
    if far:
        near_bps = max(usual_bps, *(bps for name, (bps, _) in named.items() if name not in far), 0.0)
        panel.y = {**panel.y, "range": [0, 1.1 * near_bps]}
        panel.notes.append(f"Out of view: {'; '.join(f'{name}, {rate_text(bps)}' for name, bps in far.items())}")


def _answer(request: Request, rate_bps: float | None) -> list[str]:
    """Describe the picture in two sentences: the limit of the direction, and the path's part in it."""
    facts = request.facts
    life_ns = request.connection.duration_ns
    verdict = request.connection.verdicts[request.direction]
    if rate_bps is None:
        return [verdict.headline, "The path's rate is unknown: it was never filled"]
    full = share_text((facts.budget_path_ns + facts.budget_policer_ns) / life_ns if life_ns else 0.0)
    return [verdict.headline, f"Path full for {full} of the time; its rate is {rate_text(rate_bps)}"]


def _flight(request: Request, rate_bps: float | None) -> Panel:
    panel = Panel(y={**BYTES_AXIS, "rangemode": "tozero"}, heading="In flight")
    flight, window = seen_flight(request), request.series("receive_window")
    most = int(flight.max.max()) if len(flight) else 0
    if request.facts.view != "sender":
        panel.notes.append("In flight, minus data queued before the capture point")
    if len(window):
        panel.traces += curve(request, window, "receive window", COLOURS["receive window"], width=2.4)
    panel.traces += curve(request, flight, "in flight", COLOURS["flight"], width=1.3)
    trip_ns = _least_round_trip(request)
    fill = rate_bps * trip_ns / 8e9 if rate_bps is not None and trip_ns else 0.0
    if fill:
        hover_text = f"{bytes_text(round(fill))}: the path's rate for {time_text(trip_ns)}"
        panel.traces += _limit(request, fill, "fills the path", "dot", hover_text)
    offered = int(window.max.max()) if len(window) else 0
    filling = "the flight that fills the path"
    named = {"the window": (offered, FAR), filling: (round(fill), FAR_FILL)}
    far = {name: high for name, (high, times) in named.items() if high > times * most > 0}
    if far:
        near = [high for name, high in (("the window", offered), (filling, fill)) if name not in far]
        panel.y = {**panel.y, "range": [0, 1.2 * max(most, *near, 0)]}
        panel.notes.append(f"Out of view: {'; '.join(f'{name}, {bytes_text(high)}' for name, high in far.items())}")
    resent = np.flatnonzero(request.events.sent_by(request.sender) & request.events.resent())
    heights, _ = value_at(flight, request.events.time_ns[resent])
    panel.traces += markers(request, resent, heights, "retransmitted", COLOURS["loss"], "x", notes=panel.notes)
    return panel


def _queue(request: Request) -> list[Panel]:
    waited = request.series("queue_delay")
    if not len(waited):
        return []
    panel = Panel(y={**MS_AXIS, "rangemode": "tozero"}, heading="Waiting in queues", weight=0.7)
    trip_ns = _least_round_trip(request)
    if trip_ns:
        # A queueing delay is long or short relative to the path's delay.
        panel.y = {**panel.y, "range": [0, 1.1e-6 * max(trip_ns, int(waited.max.max()))]}
        panel.notes.append(f"beyond {time_text(trip_ns)}")
    panel.traces += curve(
        request, waited, "wait in queues", COLOURS["round trip"], unit="ms", scale=1e-6, width=1.8, fill="tozeroy"
    )
    return [panel]


def _least_round_trip(request: Request) -> int:
    """Return the minimum round trip of the whole path, if the capture point reveals it."""
    return request.connection.path_rtt_ns or request.facts.rtt_min_ns or 0


def _limit(request: Request, height: float, name: str, dash: str, hover_text: str) -> list[Trace]:
    """Draw a horizontal line with its name."""
    ends = np.array([request.start_ns, request.end_ns])
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            "x": request.seconds(ends),
            "y": np.array([height, height]),
            "line": {"color": COLOURS[name], "dash": dash, "width": 1.8 if dash == "dash" else 2.4},
            "hovertemplate": f"{hover_text}<extra>{name}</extra>",
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
