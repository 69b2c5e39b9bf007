"""The distribution of a field over many sockets: the share of sockets with at most a given value.

By default the receive memory (``rmem_alloc_bytes``, the ``r`` of `ss -m`); any other field on request. Each socket of
the capture's connections counts once, with its last sample, hosts apart. The marks are p50, p95 and p99 by nearest
rank: of n values in order, p95 is the one at place 95 × n ÷ 100, rounded up (the page on many sockets). The axis is
logarithmic if the values differ widely; sockets with zero are then at its left end, and the note gives their number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tcpwin.errors import ArgumentError
from tcpwin.figures.drawing.curve import compact
from tcpwin.figures.drawing.kind import FigureKind, Nothing
from tcpwin.figures.drawing.panel import Panel
from tcpwin.figures.drawing.text import escape, short
from tcpwin.figures.drawing.theme import BYTES_AXIS, SERIES_COLOURS
from tcpwin.hosts import FIELDS, number_of

if TYPE_CHECKING:
    from tcpwin.figures.drawing.panel import Trace
    from tcpwin.figures.drawing.request import Request
    from tcpwin.hosts import Host

NO_SOCKET = (
    "no snapshot has a socket of the capture's connections: record some with `ss -tmi` or `tcpwin snap`, and add them "
    "by --with"
)
DEFAULT = "rmem_alloc_bytes"
LOGARITHMIC = 50
RANKS = (50, 95, 99)


def draw(request: Request) -> Panel:
    """Draw one curve for each host."""
    field = request.field or DEFAULT
    if field not in FIELDS:
        raise ArgumentError(f"a socket has no numeric field {field}")
    hosts = [(host.label, _values(host, field)) for host in request.analysis.hosts]
    hosts = [(label, values) for label, values in hosts if len(values)]
    if not hosts:
        has_sockets = any(host.found for host in request.analysis.hosts)
        reason = f"no socket has {field}" if has_sockets else NO_SOCKET
        raise Nothing(reason)
    every = np.concatenate([values for _, values in hosts])
    positive = every[every > 0]
    is_log = len(positive) > 0 and float(positive.max()) / float(positive.min()) > LOGARITHMIC
    panel = Panel(
        y={
            "range": [0, 104],
            "ticksuffix": " %",
            "title": {"text": "share of the sockets", "standoff": 6, "font": {"size": 12}},
        },
        x={
            **_unit(field),
            "type": "log" if is_log else "linear",
            **({} if len(positive) else {"range": [-0.05, 1], "tickmode": "linear", "dtick": 1}),
            "title": {"text": field, "standoff": 8, "font": {"size": 12}},
        },
    )
    floor = float(positive.min()) / 2 if is_log else 0.0
    zeros = int((every <= 0).sum())
    if is_log and zeros:
        panel.notes.append(f"{zeros:,} of {len(every):,} sockets have 0: drawn at the left end")
    for place, (label, values) in enumerate(hosts):
        colour = SERIES_COLOURS[place % len(SERIES_COLOURS)]
        panel.traces += _curve(request, label, values, floor, colour, field, middle=float(every.max()) / 2)
    _name_once(panel)
    return panel


def _name_once(panel: Panel) -> None:
    """If marks of several hosts coincide, keep only the first host's text."""
    named: set[tuple[float, float]] = set()
    for each in panel.traces:
        if "text" in each:
            places = [(float(x), float(y)) for x, y in zip(each["x"], each["y"], strict=True)]
            each["hovertext"] = each["text"]
            each["text"] = ["" if place in named else text for place, text in zip(places, each["text"], strict=True)]
            named.update(places)


def _values(host: Host, field: str) -> NDArray[np.float64]:
    """Return the field in the last sample of each socket, sorted."""
    values = [number_of(samples[-1], field) for samples in host.found.values() if samples]
    return np.sort(np.array([value for value in values if value is not None], dtype=np.float64))


def _unit(field: str) -> dict[str, Any]:
    if field.endswith("_bytes"):
        return dict(BYTES_AXIS)
    suffix = next((unit for ending, unit in (("_bps", "bit/s"), ("_ns", "ns")) if field.endswith(ending)), "")
    return {"tickformat": "~s", "ticksuffix": suffix, "hoverformat": ".4s"}


def _curve(
    request: Request,
    label: str,
    values: NDArray[np.float64],
    floor: float,
    colour: str,
    field: str,
    *,
    middle: float,
) -> list[Trace]:
    shares = np.arange(1, len(values) + 1) * (100 / len(values))
    drawn = np.maximum(values, floor) if floor else values
    name = short(label, 10) or "sockets"
    unit = _unit(field)["ticksuffix"]
    # Of equal values, the last has their cumulative share; thin very many to the number of points.
    last = np.flatnonzero(np.append(np.diff(drawn) > 0, True))
    if len(last) > request.points:
        last = last[np.linspace(0, len(last) - 1, request.points).astype(np.int64)]
    ranks, marks = _marks(values)
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": f"{name} ({len(values):,})",
            "legendgroup": f"sockets {escape(label)}",
            "x": compact(drawn[last]),
            "y": shares[last].astype(np.float32),
            "line": {"color": colour, "shape": "hv", "width": 1.8},
            "hovertemplate": f"%{{y:.1f}} % have at most %{{x:.4s}}{unit}<extra>{name}</extra>",
        },
        {
            "type": "scatter",
            "mode": "markers+text",
            "name": f"{name}: percentiles",
            "legendgroup": f"sockets {escape(label)}",
            "showlegend": False,
            "x": drawn[ranks],
            "y": shares[ranks],
            "text": marks,
            "textposition": ["bottom left" if each > middle else "bottom right" for each in drawn[ranks]],
            "textfont": {"size": 10, "color": request.theme.text},
            "customdata": values[ranks],
            "marker": {"color": colour, "size": 7, "symbol": "diamond"},
            "cliponaxis": False,
            "hovertemplate": f"%{{hovertext}}: %{{customdata:,d}} {unit}<extra>{name}</extra>",
        },
    ]


def _marks(values: NDArray[np.float64]) -> tuple[NDArray[np.intp], list[str]]:
    """Return the places of the percentiles and their names; equal values share a mark."""
    named: dict[float, tuple[int, list[str]]] = {}
    for rank in RANKS:
        place = -(-rank * len(values) // 100) - 1
        _, names = named.get(float(values[place]), (place, []))
        named[float(values[place])] = (place, [*names, f"p{rank}"])
    places = np.array([place for place, _ in named.values()], dtype=np.intp)
    return places, [", ".join(names) for _, names in named.values()]


FIGURE = FigureKind(
    name="socket-distribution",
    title="Distribution over sockets",
    scope="analysis",
    page=__doc__ or "",
    draw=draw,
    has_directions=False,
    has_time_axis=False,
    has_fields=True,
    order=90,
)
