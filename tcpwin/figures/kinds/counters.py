"""Growth of the hosts' counters from sample to sample, one lane each: `nstat` aligned with the packets.

Each lane is one counter of one host, scaled to its own largest increase, which the label shows. A bar extends from one
sample to the next; hover for the increase and the counter's meaning. Counters of the whole host include all of its
connections, not only this one.

Only counters of problems and waits that grew during the connection are drawn: the most significant first, twelve at
most. Traffic (segments in and out) is left out, as other figures show it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from tcpwin.figures.drawing.curve import compact
from tcpwin.figures.drawing.kind import FigureKind, Nothing
from tcpwin.figures.drawing.panel import Panel
from tcpwin.figures.drawing.text import escape, short
from tcpwin.figures.drawing.theme import SERIES_COLOURS
from tcpwin.hosts import MEANINGS, deltas

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcpwin.figures.drawing.panel import Trace
    from tcpwin.figures.drawing.request import Request

LANES = 12
TRAFFIC = (
    "TcpInSegs",
    "TcpOutSegs",
    "TcpExtTCPOrigDataSent",
    "TcpExtTCPDelivered",
    "TcpExtTCPRcvCoalesce",
    "TcpExtTCPKeepAlive",
)
"""Counters that grow with every transfer."""
SEPARATE = 60
"""Maximum number of bars of a lane that are outlined; with more, a phone would show outlines alone."""
BAR = 0.55
"""Share of a lane's height for its bars; the rest is for its label."""


@dataclass(slots=True)
class Lane:
    """One counter of one host: start, end and increase of each interval."""

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    values: list[int] = field(default_factory=list)


def draw(request: Request) -> Panel:
    """Draw the lanes of all hosts that have counters with times."""
    hosts = request.connection.analysis.hosts
    if not any(host.counters for host in hosts):
        raise Nothing("no snapshot has counters: record some with `nstat` or `tcpwin snap`, and add them by --with")
    lanes = _chosen(_lanes(request))
    if not lanes:
        raise Nothing("no counter of loss, waiting or memory grew between two samples with times")
    several = sum(1 for host in hosts if host.counters) > 1
    panel = Panel(y={}, weight=0.17 * len(lanes), layout={"barmode": "overlay"})
    for place, ((host, name), lane) in enumerate(lanes):
        base = len(lanes) - 1 - place
        colour = SERIES_COLOURS[list(dict.fromkeys(key[0] for key, _ in lanes)).index(host) % len(SERIES_COLOURS)]
        panel.traces.append(_bars(request, lane, base, _label(name), host, colour, several=several))
        owner = f"{escape(host)}: " if several and host else ""
        panel.labels.append((base + BAR, f"{owner}{_label(name)}, at most {max(lane.values):,}"))
    panel.y = {
        "range": [-0.06, len(lanes)],
        "showticklabels": False,
        "ticks": "",
        "showgrid": False,
        "fixedrange": True,
    }
    return panel


def _lanes(request: Request) -> Iterator[tuple[tuple[str, str], Lane]]:
    found: dict[tuple[str, str], Lane] = {}
    for host in request.connection.analysis.hosts:
        offset_ns = host.clock.offset_ns if host.clock is not None else 0
        for delta in deltas(host.counters):
            if delta.start_ns is None or delta.end_ns is None or delta.end_ns <= delta.start_ns:
                continue
            start_ns, end_ns = delta.start_ns + offset_ns, delta.end_ns + offset_ns
            if end_ns < request.start_ns or start_ns > request.end_ns:
                continue
            for name, value in delta.values.items():
                if value > 0 and name in MEANINGS and name not in TRAFFIC:
                    lane = found.setdefault((host.label, name), Lane())
                    lane.starts.append(start_ns)
                    lane.ends.append(end_ns)
                    lane.values.append(value)
    yield from found.items()


def _chosen(lanes: Iterator[tuple[tuple[str, str], Lane]]) -> list[tuple[tuple[str, str], Lane]]:
    """Choose the first by the order of meanings, which puts windows and loss first."""
    rank = {name: place for place, name in enumerate(MEANINGS)}
    ranked = sorted(lanes, key=lambda each: (rank[each[0][1]], each[0][0]))
    return ranked[:LANES]


def _bars(request: Request, lane: Lane, base: int, name: str, host: str, colour: str, *, several: bool) -> Trace:
    most = max(lane.values)
    starts, ends = np.array(lane.starts, dtype=np.int64), np.array(lane.ends, dtype=np.int64)
    values = np.array(lane.values, dtype=np.int64)
    if len(values) > request.points:
        # So many samples are closer than pixels: keep the largest.
        largest = np.sort(np.argpartition(values, -request.points)[-request.points :])
        starts, ends, values = starts[largest], ends[largest], values[largest]
    meaning = next((each.counts for full, each in MEANINGS.items() if _label(full) == name), "")
    text = "<br>".join(wrap(meaning, 60))
    owner = f"{escape(host)}: " if host else ""
    return {
        "type": "bar",
        "name": short(host) or "counters",
        "legendgroup": f"counters {escape(host)}",
        "showlegend": several,
        "x": request.seconds(starts),
        "width": (ends - starts) / 1e9,
        "offset": 0,
        "base": base,
        "y": (values / most * (BAR - 0.05)).astype(np.float32),
        "customdata": compact(values),
        # Adjacent intervals of equal height are still several intervals.
        "marker": {
            "color": colour,
            "line": {"color": request.theme.background, "width": 1 if len(values) <= SEPARATE else 0},
        },
        "hovertemplate": f"{owner}<b>{name} + %{{customdata:,d}}</b> from %{{x:.6f}} s<br>{text}<extra></extra>",
    }


def _label(name: str) -> str:
    return name.removeprefix("TcpExt")


FIGURE = FigureKind(
    name="counters",
    title="Counters of the hosts",
    scope="connection",
    page=__doc__ or "",
    draw=draw,
    has_directions=False,
    is_in_timeline=True,
    order=70,
)
