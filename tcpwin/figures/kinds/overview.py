"""All connections by round trip and goodput, with the rate that a window allows at each round trip.

A window allows at most window ÷ round trip: the straight lines, on logarithmic axes. Connections along one of these
lines are limited by a window of that size; the colour is the limit of each connection's verdict. The article
"Optimizing TCP for high WAN throughput" (Cloudflare, 2022) begins with such a line, of 2 MiB.

The round trip is the minimum of the whole path (``path_rtt_ns``), so each line is an upper bound; connections without
one, or without data, are left out. Goodput is the mean over the direction's lifetime. Of many connections, those with
most data are drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tcpwin.figures.drawing.kind import FigureKind, Nothing
from tcpwin.figures.drawing.panel import Panel
from tcpwin.figures.drawing.text import escape
from tcpwin.figures.drawing.theme import BELOW_ONE, BUDGET_COLOURS, BUDGET_SYMBOLS, COLOURS, log_axis
from tcpwin.limits import LIMIT_GROUPS, LIMIT_NAMES, LIMITS

if TYPE_CHECKING:
    from tcpwin.analysis import Connections
    from tcpwin.figures.drawing.panel import Trace
    from tcpwin.figures.drawing.request import Request
    from tcpwin.limits import Connection

CEILINGS = ((64 << 10, "64 KiB"), (1 << 20, "1 MiB"), (16 << 20, "16 MiB"), (256 << 20, "256 MiB"))
"""Window sizes drawn as lines: without scaling, and in steps of 16 from there."""
MARGIN = 1.6
"""Padding of the round trips, on both sides."""
BELOW, ABOVE = 2.5, 4.0
"""Padding under the lowest and over the highest rate, as factors."""
LABEL = 0.1
"""Distance of a line's label from the lower edge, as a share of the plot's height."""
NAMED = 200
"""Maximum number of points whose ends are shown on hover; with more, only their number."""


def draw(request: Request) -> Panel:
    """Draw points and lines."""
    connections = request.analysis.connections
    trips, rates, amounts, is_a = _measures(connections)
    known = (trips > 0) & (rates > 0)
    total = len(trips)
    if not known.any():
        raise Nothing("no connection has both a known path round trip and acknowledged data")
    chosen = np.flatnonzero(known)
    notes: list[str] = []
    if len(chosen) > request.points:
        largest = np.argpartition(amounts[chosen], -request.points)[-request.points :]
        chosen = np.sort(chosen[largest])
        notes.append(f"{len(chosen):,} connections with most data drawn, of {int(known.sum()):,}")
    elif len(chosen) < total:
        left_out = total - len(chosen)
        notes.append(f"{left_out:,} without round trip or acknowledged data left out")
    panel = Panel(
        y={
            "tickformat": "~s" if rates[chosen].min() / BELOW >= 1 else BELOW_ONE,
            "ticksuffix": "bit/s",
            "title": {"text": "goodput", "standoff": 6, "font": {"size": 12}},
            **log_axis(*_ends_of(rates[chosen]), below=BELOW, above=ABOVE),
        },
        x={
            "ticksuffix": " ms",
            "title": {"text": "minimum round trip of the path", "standoff": 8, "font": {"size": 12}},
            **log_axis(*_ends_of(trips[chosen] / 1e6), below=MARGIN, above=MARGIN),
        },
        notes=notes,
        weight=1.4,
    )
    panel.traces += _ceilings(trips[chosen] / 1e6, rates[chosen])
    limits = np.array([connections[int(id)].verdict.limit for id in chosen])
    for name in LIMITS:
        members = chosen[limits == name]
        if len(members):
            panel.traces.append(_points(request, connections, members, trips, rates, is_a, name))
    return panel


def _measures(
    connections: Connections[Connection],
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64], NDArray[np.bool_]]:
    """Return each connection's round trip in ns (0: unknown), goodput in bit/s, bytes, and whether ``a`` sent more."""

    def column(name: str) -> NDArray[np.float64]:
        return np.ma.filled(connections.column(name), 0)

    trips = column("path_rtt_ns").astype(np.int64)
    sent = {direction: column(f"{direction}.acked_bytes").astype(np.int64) for direction in ("a_to_b", "b_to_a")}
    is_a = sent["a_to_b"] >= sent["b_to_a"]
    rates = np.where(is_a, column("a_to_b.goodput_bps"), column("b_to_a.goodput_bps"))
    return trips, rates, np.where(is_a, sent["a_to_b"], sent["b_to_a"]), is_a


def _points(
    request: Request,
    connections: Connections[Connection],
    members: NDArray[np.int64],
    trips: NDArray[np.int64],
    rates: NDArray[np.float64],
    is_a: NDArray[np.bool_],
    limit: str,
) -> Trace:
    names = [_ends(connections[int(id)], bool(is_a[id])) for id in members] if len(connections) <= NAMED else None
    ends = "<br>%{text}" if names else ""
    return {
        "type": "scatter",
        "mode": "markers",
        "name": LIMIT_NAMES[limit],
        "x": (trips[members] / 1e6).astype(np.float32),
        "y": rates[members].astype(np.float32),
        "customdata": members.astype(np.int32),
        **({"text": names} if names else {}),
        "marker": {
            "color": BUDGET_COLOURS[LIMIT_GROUPS[limit]],
            "symbol": BUDGET_SYMBOLS[LIMIT_GROUPS[limit]],
            "size": 9 if len(connections) <= NAMED else 6,
            "opacity": 0.85,
            "line": {"color": request.theme.background, "width": 0.5},
        },
        "hovertemplate": f"<b>connection %{{customdata:d}}</b>{ends}<br>%{{y:,.4~r}} bit/s at %{{x:,.4~g}} ms"
        f"<extra>{LIMIT_NAMES[limit]}</extra>",
    }


def _ends(connection: Connection, from_a: bool) -> str:
    ends = (connection.a, connection.b) if from_a else (connection.b, connection.a)
    return " → ".join(escape(end) for end in ends)


def _ends_of(values: NDArray[Any]) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def _ceilings(trips_ms: NDArray[np.float64], rates: NDArray[np.float64]) -> list[Trace]:
    """Draw lines for the windows that pass through the plot, each from edge to edge."""
    shortest, longest = _ends_of(trips_ms)
    first, last = shortest / MARGIN, longest * MARGIN
    lowest, highest = _ends_of(rates)
    bottom, top = lowest / BELOW, highest * ABOVE
    label_fits = first * (last / first) ** 0.2
    lowest_label = bottom * (top / bottom) ** LABEL
    traces: list[Trace] = []
    for window, name in CEILINGS:
        ends = [max(first, window * 8e3 / top), min(last, window * 8e3 / bottom)]
        named_at = min(last, window * 8e3 / lowest_label)
        if named_at <= ends[0]:
            continue
        trips = [ends[0], named_at, ends[1]]
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers+text",
                "name": "window ceiling",
                "legendgroup": "window ceiling",
                "x": trips,
                "y": [window * 8e3 / trip for trip in trips],
                "text": ["", name, ""],
                "textposition": "bottom left" if named_at > label_fits else "top right",
                "textfont": {"size": 11, "color": COLOURS["ceiling"]},
                # Invisible: it keeps the name off an almost level line.
                "marker": {"size": 8, "color": "rgba(0,0,0,0)"},
                "line": {"color": COLOURS["ceiling"], "dash": "dash", "width": 1},
                "hovertemplate": f"a window of {name}: at most %{{y:,.4~r}} bit/s at %{{x:,.4~g}} ms<extra></extra>",
            }
        )
    return traces


FIGURE = FigureKind(
    name="overview",
    title="Round trip and goodput",
    scope="analysis",
    page=__doc__ or "",
    draw=draw,
    has_directions=False,
    has_time_axis=False,
    order=5,
)
