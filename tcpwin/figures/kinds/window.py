"""The receive window and the bytes in flight over time: the two curves that reveal a receiver-limited transfer.

If the flight touches the window, the receiver limits; if it stays below, something else does: the congestion
window (drawn from `ss`, segments × MSS, or on request by Linux's rules), the application, the path. The article
"Optimizing TCP for high WAN throughput" (Cloudflare, 2022) draws these two curves.

- **receive window**: in bytes, as the sender accepts it (RFC 9293 §3.10.7.4, SND.WND by SND.WL1 and SND.WL2). If the
  scale is uncertain, the smallest window that the packets allow is drawn, dotted.
- **right edge − ACK**: the same by the furthest right edge ever offered. It is above the receive window while a window
  is retracted, and initially shown only if that happened.
- **in flight**: SND.NXT − SND.UNA at the capture point; away from the sender, as the sender saw it, if known.
- **pipe**: in flight minus the data that SACK reports (RFC 6675); initially shown only if there was SACK.
- If segments are few enough, such as after zooming in, each is a dot on its curve with its frame.
- **snd_wnd, cwnd × MSS**: values of the sender's kernel (`ss`), a point for each sample.
- **window closed, stall, pause**: shaded from the frame that began it to the frame that ended it.
- **retransmitted, window probe, window shrunk, idle restart**: markers at the frame's time, at the height of the flight
  then; hover for the frame, the cause and the rule.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpwin.analysis import Series
from tcpwin.figures.drawing.curve import curve, frames, value_at
from tcpwin.figures.drawing.kind import FigureKind, Nothing
from tcpwin.figures.drawing.marker import markers
from tcpwin.figures.drawing.panel import Panel
from tcpwin.figures.drawing.sockets import socket_curve
from tcpwin.figures.drawing.span import stalls, zero_windows
from tcpwin.figures.drawing.theme import BYTES_AXIS, COLOURS
from tcpwin.units import time_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tcpwin.figures.drawing.panel import Trace
    from tcpwin.figures.drawing.request import Request


def draw(request: Request) -> Panel:
    """Draw curves, shades and markers of one direction."""
    flight = seen_flight(request)
    window = request.series("receive_window")
    panel = Panel(y={**BYTES_AXIS, "rangemode": "tozero"})
    if flight.name == "sender_flight" and request.facts.sender_shift_ns:
        later = time_text(request.facts.sender_shift_ns)
        panel.notes.append(f"In flight as the sender saw it: it had each ACK {later} after the capture")
    panel.traces += _windows(request, window, panel)
    panel.traces += _pipe(request)
    panel.traces += curve(request, flight, "in flight", COLOURS["flight"], width=1.3)
    panel.traces += _congestion(request)
    panel.traces += socket_curve(
        request,
        request.sender,
        "snd_wnd_bytes",
        "snd_wnd (ss)",
        COLOURS["receive window"],
        symbol="circle-open",
        is_joined=False,
    )
    if not panel.traces:
        if not getattr(request.connection, f"{request.receiver}_to_{request.sender}").segments:
            raise Nothing(f"no segment of {request.receiver} was captured, so window and flight are unknown")
        raise Nothing("neither window nor data in flight is known for this direction")
    panel.traces += frames(
        request,
        window,
        request.receiver,
        "receive window",
        COLOURS["receive window"],
        with_data=False,
        column="window",
    )
    captured = "bytes_in_flight" if flight.name == "flight" else None
    panel.traces += frames(
        request, flight, request.sender, "in flight", COLOURS["flight"], with_data=True, column=captured
    )
    panel.traces += _happenings(request, flight, panel.notes)
    panel.shades = [*stalls(request), *zero_windows(request)]
    return panel


def seen_flight(request: Request) -> Series:
    """Return the flight as the sender saw it, if that differs from the capture's view and was known for long enough."""
    captured = request.series("flight")
    if request.facts.view == "sender" or not len(captured):
        return captured
    seen = request.series("sender_flight")
    # A sender has at least the captured flight: a lower value means that its view began after the data.
    return seen if len(seen) and seen.max.max() >= captured.max.max() else captured


def _windows(request: Request, window: Series, panel: Panel) -> list[Trace]:
    if len(window):
        return [
            *curve(request, window, "receive window", COLOURS["receive window"], width=2.4),
            *_right_edge(request, window),
        ]
    scale = request.facts.window_scale
    raw = request.series("window_raw")
    if not len(raw):
        return []
    panel.notes.append(
        f"The window's scale is not certain: shift {scale.shift_min} to {scale.shift_max}. The smallest is drawn."
    )
    shift = scale.shift_min
    least = replace(raw, min=raw.min << shift, max=raw.max << shift, last=raw.last << shift, sum=raw.sum << shift)
    return curve(request, least, "window, at least", COLOURS["receive window"], dash="dot")


def _right_edge(request: Request, window: Series) -> list[Trace]:
    edge, acknowledged = request.series("right_edge"), request.series("acknowledged")
    if not len(edge) or not len(acknowledged):
        return []
    una, known = value_at(acknowledged, edge.time_ns + edge.width_ns - 1)
    room = (edge.last - una)[known]
    if not len(room):
        return []
    times = edge.time_ns[known]
    offered, _ = value_at(window, times + edge.width_ns - 1)
    unit = 1 << (request.facts.window_scale.shift or 0)
    has_shrunk = bool(np.any(room - offered > unit))
    drawn = Series("right_edge", times, room, room, room, room, edge.width_ns)
    return curve(
        request,
        drawn,
        "right edge − ACK",
        COLOURS["right edge"],
        dash="dash",
        visible=True if has_shrunk else "legendonly",
    )


def _pipe(request: Request) -> list[Trace]:
    pipe, flight = request.series("pipe"), request.series("flight")
    if not len(pipe) or np.array_equal(pipe.last, flight.last):
        return []
    return curve(request, pipe, "pipe", COLOURS["pipe"], width=1, dash="dot")


def _congestion(request: Request) -> list[Trace]:
    from_kernel = socket_curve(
        request,
        request.sender,
        "cwnd_bytes",
        "cwnd × MSS (ss)",
        COLOURS["congestion window"],
        symbol="diamond-open",
        is_joined=False,
    )
    model = curve(
        request,
        request.series("cwnd_model"),
        "cwnd (modelled)",
        COLOURS["congestion window"],
        dash="dot",
        visible="legendonly",
    )
    return [*from_kernel, *model]


def _happenings(request: Request, flight: Series, notes: list[str]) -> list[Trace]:
    events = request.events
    sender, answers = events.sent_by(request.sender), events.sent_by(request.receiver)
    hidden = {"visible": "legendonly"}
    found: list[tuple[NDArray[np.bool_], str, str, str, dict[str, Any]]] = [
        (sender & events.resent(), "retransmitted", COLOURS["loss"], "x", {}),
        (sender & events.named("zero_window_probe"), "window probe", COLOURS["probe"], "triangle-up", {}),
        (sender & events.named("idle_restart"), "idle restart", COLOURS["restart"], "star", {}),
        (answers & events.named("window_shrink"), "window shrunk", COLOURS["right edge"], "triangle-down", {}),
        (sender & events.named("window_full"), "window filled", COLOURS["receive window"], "line-ew-open", hidden),
    ]
    traces: list[Trace] = []
    for mask, name, colour, symbol, more in found:
        places = np.flatnonzero(mask)
        heights, _ = value_at(flight, events.time_ns[places])
        traces += markers(request, places, heights, name, colour, symbol, notes=notes, **more)
    return traces


FIGURE = FigureKind(
    name="window",
    title="Window and bytes in flight",
    scope="connection",
    page=__doc__ or "",
    draw=draw,
    is_in_timeline=True,
    order=10,
)
