"""How much the hosts' counters grew from sample to sample, one lane each: `nstat` beside the packets.

Each lane is one counter of one host, scaled to its own largest increase, which the label tells. A bar reaches from one
sample to the next; hovering tells the increase, and what the kernel counts there. Counters of the whole host count all
of its connections, not only this one.

Drawn are the counters that say that something went wrong, or was waited for, and that grew while the connection lived:
those with most to tell first, twelve at most. Traffic (segments in and out) is left out, as other figures show it.
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
"""Bars of a lane that a line parts from each other; of more, a phone would show lines alone."""
BAR = 0.55
"""Of a lane's height; the rest is its label's."""


@dataclass(slots=True)
class Lane:
    """One counter of one host: when each interval began and ended, and how much it grew."""

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    values: list[int] = field(default_factory=list)


def draw(request: Request) -> Panel:
    """Lanes of all hosts that have counters with times."""
    hosts = request.connection.analysis.hosts
    if not any(host.counters for host in hosts):
        raise Nothing("no snapshot has counters: record some with `nstat` or `tcpwin snap`, and add them by --with")
    lanes = _chosen(_lanes(request))
    if not lanes:
        raise Nothing("no counter of loss, of waiting or of memory grew between two samples with times")
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
    """Those that stand first among the meanings, which are in order of what they say of windows and loss."""
    rank = {name: place for place, name in enumerate(MEANINGS)}
    ranked = sorted(lanes, key=lambda each: (rank[each[0][1]], each[0][0]))
    return ranked[:LANES]


def _bars(request: Request, lane: Lane, base: int, name: str, host: str, colour: str, *, several: bool) -> Trace:
    most = max(lane.values)
    starts, ends = np.array(lane.starts, dtype=np.int64), np.array(lane.ends, dtype=np.int64)
    values = np.array(lane.values, dtype=np.int64)
    if len(values) > request.points:
        # So many samples lie closer than pixels: the largest stay.
        kept = np.sort(np.argpartition(values, -request.points)[-request.points :])
        starts, ends, values = starts[kept], ends[kept], values[kept]
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
        # Intervals of the same height side by side are several.
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
