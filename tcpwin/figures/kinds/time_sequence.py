"""Bytes over the time when they were sent and acknowledged: tcptrace's time-sequence graph.

One axis is bytes since the connection's start (the SYN counts as one). The steeper the curves, the faster the
transfer; the space between the ACK line and the window line is what the receiver allows, the space between the ACK line
and the data is in flight.

- **segments**: each from its first byte to its last, with its frame. If there are too many to distinguish, their
  upper edge (SND.NXT) replaces them: zoom in.
- **acknowledged**: SND.UNA, by the ACKs that came back; each ACK with its frame if segments are drawn.
- **window**: the right edge, ACK plus window; absent while the window's scale is uncertain.
- **SACK**: the blocks that ACKs report, at the time of the ACK (RFC 2018); a DSACK is below the ACK line (RFC 2883).
- **retransmitted** segments, marked by cause, at their first byte; and late ones. Hover for the rule that decided and
  the frame of the first copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tcpwin.figures.drawing.curve import curve, value_at
from tcpwin.figures.drawing.kind import FigureKind, Nothing
from tcpwin.figures.drawing.marker import markers
from tcpwin.figures.drawing.panel import Panel
from tcpwin.figures.drawing.span import stalls, zero_windows
from tcpwin.figures.drawing.theme import BYTES_AXIS, CAUSE_MARKS, COLOURS

if TYPE_CHECKING:
    from tcpwin.analysis import Table
    from tcpwin.figures.drawing.panel import Trace
    from tcpwin.figures.drawing.request import Request

WRAP = 1 << 32
FAR = 3
"""Multiple of the data's height above which a window starts out of view."""


def draw(request: Request) -> Panel:
    """Draw segments one by one if they are few, otherwise curves."""
    panel = Panel(y={**BYTES_AXIS})
    rows = request.rows
    if rows is not None and len(rows["frame"]):
        panel.traces += _segments(request, rows)
    else:
        panel.traces += _curves(request)
    if not panel.traces:
        raise Nothing("no data and no acknowledgment of this direction was captured")
    if not any(each["name"] == "acknowledged" for each in panel.traces):
        panel.notes.append(f"No ACK of {request.receiver} was captured")
    panel.traces += _resent(request, panel.notes)
    _look_at_data(panel)
    panel.shades = [*stalls(request), *zero_windows(request)]
    return panel


def _look_at_data(panel: Panel) -> None:
    """Begin with the data in view if a window far above would flatten it."""
    heights = {each["name"]: each["y"] for each in panel.traces}
    window = heights.pop("window", None)
    least = min((float(np.min(each)) for each in heights.values()), default=0.0)
    most = max((float(np.max(each)) for each in heights.values()), default=0.0)
    if window is not None and most > least and float(np.max(window)) - most > FAR * (most - least):
        margin = (most - least) * 0.1
        panel.y = {**panel.y, "range": [least - margin, most + margin]}
        panel.notes.append("The window is far above: double-click to show it")


def _curves(request: Request) -> list[Trace]:
    return [
        *curve(request, request.series("right_edge"), "window", COLOURS["receive window"]),
        *curve(request, request.series("sequence"), "sent (SND.NXT)", COLOURS["sent"], width=2.6),
        *curve(request, request.series("acknowledged"), "acknowledged", COLOURS["acknowledged"], width=1.3),
    ]


def _segments(request: Request, rows: Table) -> list[Trace]:
    is_data = (rows["direction"] == request.sender) & ~_mask(rows["sequence"])
    is_ack = (rows["direction"] == request.receiver) & ~_mask(rows["acknowledged"])
    traces: list[Trace] = []
    edges = is_ack & ~_mask(rows["right_edge"])
    if edges.any():
        traces.append(
            _steps(request, rows, edges, "right_edge", "window", COLOURS["receive window"], "line-ew-open", 5)
        )
    if is_ack.any():
        traces.append(
            _steps(request, rows, is_ack, "acknowledged", "acknowledged", COLOURS["acknowledged"], "circle", 4)
        )
    traces += _sacks(request, rows, is_ack)
    if is_data.any():
        traces.append(_bars(request, rows, is_data))
    return traces


def _bars(request: Request, rows: Table, chosen: NDArray[np.bool_]) -> Trace:
    """Draw segments as bars from their first byte to their last."""
    lengths = np.asarray(rows["length"])[chosen].astype(np.int32)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "segments",
        "x": request.seconds(np.asarray(rows["time_ns"])[chosen]),
        "y": np.asarray(rows["sequence"])[chosen].astype(np.float64),
        "marker": {"color": COLOURS["sent"], "symbol": "line-ew-open", "size": 4, "line": {"width": 1}},
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": lengths,
            "arrayminus": np.zeros(len(lengths), dtype=np.int8),
            "color": COLOURS["sent"],
            "thickness": 1.6,
            "width": 2,
        },
        "customdata": np.stack((np.asarray(rows["frame"])[chosen].astype(np.int32), lengths), axis=1),
        "hovertemplate": "<b>frame %{customdata[0]:,d}</b>: %{customdata[1]:,d} B from byte %{y:,d}<br>%{x:.6f} s"
        "<extra>segments</extra>",
    }


def _steps(
    request: Request,
    rows: Table,
    chosen: NDArray[np.bool_],
    column: str,
    name: str,
    colour: str,
    symbol: str,
    size: int,
) -> Trace:
    """Draw a step line from segment to segment, each with its frame."""
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": request.seconds(np.asarray(rows["time_ns"])[chosen]),
        "y": np.asarray(rows[column])[chosen].astype(np.float64),
        "line": {"color": colour, "shape": "hv", "width": 1.4},
        "marker": {"color": colour, "symbol": symbol, "size": size},
        "customdata": np.asarray(rows["frame"])[chosen].astype(np.int32),
        "hovertemplate": f"<b>frame %{{customdata:,d}}</b>: byte %{{y:,d}}<br>%{{x:.6f}} s<extra>{name}</extra>",
    }


def _sacks(request: Request, rows: Table, is_ack: NDArray[np.bool_]) -> list[Trace]:
    """Draw reported blocks as bars at the time of the ACK that reported them."""
    times, lefts, lengths, frames = [], [], [], []
    for block in range(1, 5):
        left, right = rows[f"sack_left_{block}"], rows[f"sack_right_{block}"]
        is_reported = is_ack & ~_mask(left) & ~_mask(right)
        times.append(np.asarray(rows["time_ns"])[is_reported])
        lefts.append(np.asarray(left)[is_reported])
        lengths.append((np.asarray(right) - np.asarray(left))[is_reported])
        frames.append(np.asarray(rows["frame"])[is_reported])
    if not sum(len(each) for each in times):
        return []
    size = np.concatenate(lengths).astype(np.int32)
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": "SACK",
            "x": request.seconds(np.concatenate(times)),
            "y": np.concatenate(lefts).astype(np.float64),
            "marker": {"color": COLOURS["sack"], "symbol": "line-ew-open", "size": 3, "line": {"width": 1}},
            "error_y": {
                "type": "data",
                "symmetric": False,
                "array": size,
                "arrayminus": np.zeros(len(size), dtype=np.int8),
                "color": COLOURS["sack"],
                "thickness": 1,
                "width": 0,
            },
            "customdata": np.stack((np.concatenate(frames).astype(np.int32), size), axis=1),
            "hovertemplate": "<b>frame %{customdata[0]:,d}</b>: SACK of %{customdata[1]:,d} B from byte %{y:,d}"
            "<br>%{x:.6f} s<extra>SACK</extra>",
        }
    ]


def _resent(request: Request, notes: list[str]) -> list[Trace]:
    events = request.events
    sender = events.sent_by(request.sender)
    by_cause = {cause: np.flatnonzero(sender & events.caused_by(cause)) for cause in events.causes}
    by_cause = {cause: places for cause, places in by_cause.items() if len(places)}
    sequence = request.series("sequence")
    traces: list[Trace] = []
    for cause, (label, colour, symbol) in CAUSE_MARKS.items():
        if cause in by_cause:
            places = by_cause[cause]
            heights = _sequence_places(request, places, sequence)
            traces += markers(
                request,
                places,
                heights,
                label,
                colour,
                symbol,
                height_format="byte %{y:,d}",
                most=max(2 * request.marks // len(by_cause), 30),
                notes=notes,
            )
    return traces


def _sequence_places(request: Request, chosen: NDArray[np.intp], sequence: Any) -> NDArray[np.float64]:
    """Return sequence numbers of events on the axis: modulo 2³², nearest to the data sent by then."""
    origin = request.view.place(0, direction=request.direction) or 0
    places = request.events.seq[chosen] + origin
    sent, _ = value_at(sequence, request.events.time_ns[chosen])
    return (places + ((sent - places + WRAP // 2) // WRAP) * WRAP).astype(np.float64)


def _mask(column: Any) -> NDArray[np.bool_]:
    return np.ma.getmaskarray(column)


FIGURE = FigureKind(
    name="time-sequence",
    title="Time and sequence",
    scope="connection",
    page=__doc__ or "",
    draw=draw,
    order=20,
)
