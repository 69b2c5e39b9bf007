"""The time of each sender as a band along the time axis: every instant belongs to one item.

The upper band is the requested direction, the lower one the other. A direction that carried next to no data beside the
other's only acknowledged: it had nothing to send almost all of the time, and its band is left out. If intervals are too
short to draw, neighbours share a column: the heights are then the items' shares of it. Items are those of the page on
the time budget, from the packets alone; items of one colour belong together:

- **receive window**: closed, too small for a segment, or full.
- **congestion window**: slow start, congestion window, cwnd after loss.
- **loss recovery**: fast recovery, timeout, tail loss. **idle restart**: round trips lost to a reset congestion window.
- **peer silent**: at the end the peer left data, probes or keep-alives unanswered.
- **nothing to send**, **send buffer**, **path**, **handshake**, **closed** and **not known** are separate items.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tcpwin.analysis import DirectionName
from tcpwin.figures.drawing.kind import FigureKind, Nothing
from tcpwin.figures.drawing.panel import Panel
from tcpwin.figures.drawing.theme import BUDGET_COLOURS, pattern_fill
from tcpwin.limits import GROUPS, ITEM_LIMITS, ITEM_NAMES, LIMIT_NAMES, role_of

if TYPE_CHECKING:
    from tcpwin.analysis import BudgetSeries, Direction
    from tcpwin.figures.drawing.panel import Trace
    from tcpwin.figures.drawing.request import Request

PATTERNS = {
    "handshake": ("|",),
    "receiver": ("", "/", "x", "."),
    "congestion window": ("", "/"),
    "loss": ("/", "-", "\\", "+"),
    "silent peer": ("x",),
    "idle restart": ("\\",),
    "application": ("",),
    "turns": ("", "/", "-", "."),
    "send buffer": ("|",),
    "path": ("", "x"),
    "closed": (".",),
    "unknown": ("-",),
}
"""Patterns of a group's items, in order. Colours that red-green colour blindness confuses (window closed and handshake,
nothing to send and fast recovery, path and idle restart) have different patterns.
"""
_ALL_PATTERNS = ("", "/", "\\", "x", "-", "|", "+", ".")
HEIGHT = 0.8
"""Height of a band within its lane."""
EXACT_NS = 16_000_000_000
"""Largest time that 24 bits hold to the microsecond."""
FOLDED_SHARE = 0.01
"""Data of a direction, as a share of the other's, up to which its band is left out."""
MOST_INTERVALS = 300
"""Maximum number of intervals of a band: as many as a phone's screen has columns."""


def patterns_of(group: str) -> tuple[str, ...]:
    """Return the patterns of a group's items: its own, then the others for items beyond them."""
    own = PATTERNS.get(group, ())
    return (*own, *(each for each in _ALL_PATTERNS if each not in own))


def draw(request: Request) -> Panel:
    """Draw two bands, with the requested direction on top."""
    other: DirectionName = "b_to_a" if request.direction == "a_to_b" else "a_to_b"
    lanes: list[tuple[int, DirectionName]] = [(1, request.direction), (0, other)]
    back: Direction = getattr(request.connection, other)
    ranges = [-0.05, 2]
    if back.payload_bytes <= FOLDED_SHARE * request.facts.payload_bytes:
        lanes, ranges = lanes[:1], [0.95, 2]
    elif request.facts.payload_bytes <= FOLDED_SHARE * back.payload_bytes:
        lanes, ranges = lanes[1:], [-0.05, 1]
    bands = [(lane, *_merged(request.view.budget(direction=direction))) for lane, direction in lanes]
    if not any(len(starts) for _, starts, _, _ in bands):
        raise Nothing("no time passed between the segments of this connection")
    panel = Panel(
        y={
            "range": ranges,
            "tickmode": "array",
            "tickvals": [HEIGHT / 2, 1 + HEIGHT / 2],
            "ticktext": [_roles(request, other), _roles(request, request.direction)],
            "showgrid": False,
            "fixedrange": True,
        },
        weight=0.35 if len(lanes) == 1 else 0.6,
        layout={"barmode": "overlay"},
    )
    for group, items in GROUPS.items():
        for item, pattern in zip(items, patterns_of(group), strict=False):
            panel.traces += _item(request, bands, item, BUDGET_COLOURS[group], pattern)
    return panel


def _roles(request: Request, direction: DirectionName) -> str:
    """Return sender and receiver of a direction."""
    return " → ".join(role_of(request.connection, side) for side in (direction[0], direction[-1]))


def _merged(series: BudgetSeries) -> tuple[NDArray[np.int64], NDArray[np.int64], dict[str, NDArray[np.int64]]]:
    """Return start, end and items of the intervals: first merge neighbours with the same single item, then any
    neighbours.
    """
    names = list(series.spent_ns)
    spent = np.stack([series.spent_ns[name] for name in names]) if names else np.zeros((0, len(series)), dtype=np.int64)
    starts, ends = series.start_ns, series.end_ns
    if len(starts):
        single = np.where((spent > 0).sum(axis=0) <= 1, spent.argmax(axis=0), -1)
        begins = np.append(True, (single[1:] != single[:-1]) | (single[1:] < 0))
        starts, ends, spent = _reduced(starts, ends, spent, np.flatnonzero(begins))
    if len(starts) > MOST_INTERVALS:
        # Each interval goes whole to the column where it begins.
        columns = (starts - starts[0]) * MOST_INTERVALS // max(int(ends[-1] - starts[0]), 1)
        starts, ends, spent = _reduced(
            starts, ends, spent, np.flatnonzero(np.append(True, columns[1:] != columns[:-1]))
        )
    return starts, ends, dict(zip(names, spent, strict=True))


def _reduced(
    starts: NDArray[np.int64], ends: NDArray[np.int64], spent: NDArray[np.int64], heads: NDArray[np.intp]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    lasts = np.append(heads[1:], len(starts)) - 1
    return starts[heads], ends[lasts], np.add.reduceat(spent, heads, axis=1)


def _item(
    request: Request,
    bands: list[tuple[int, NDArray[np.int64], NDArray[np.int64], dict[str, NDArray[np.int64]]]],
    item: str,
    colour: str,
    pattern: str,
) -> list[Trace]:
    """Draw the bars of one item in both bands."""
    parts = []
    for lane, starts, ends, spent in bands:
        if item not in spent or not len(starts):
            continue
        total = np.maximum(sum(spent.values()), 1)
        below = np.zeros(len(starts))
        for name, each in spent.items():
            if name == item:
                break
            below = below + each / total
        chosen = spent[item] > 0
        heights = spent[item][chosen] / total[chosen] * HEIGHT
        bases = lane + below[chosen] * HEIGHT
        parts.append((starts[chosen], ends[chosen], bases, heights, spent[item][chosen]))
    first, last, base, height, taken = (np.concatenate(each) for each in zip(*parts, strict=True))
    if not len(first):
        return []
    name = ITEM_NAMES[item]
    return [
        {
            "type": "bar",
            "name": name,
            "x": request.seconds(first),
            "width": ((last - first) / 1e9).astype(np.float32),
            "offset": 0,
            "base": base.astype(np.float32),
            "y": height.astype(np.float32),
            "customdata": _milliseconds(taken),
            # For pages that add up the time of a span by limit.
            "meta": {"limit": ITEM_LIMITS[item], "words": LIMIT_NAMES[ITEM_LIMITS[item]]},
            "marker": pattern_fill(pattern, colour, request.theme.background),
            "hovertemplate": f"{name}: %{{customdata:,.3f}} ms from %{{x:.6f}} s<extra></extra>",
        }
    ]


def _milliseconds(taken_ns: NDArray[np.int64]) -> NDArray[np.float32] | NDArray[np.float64]:
    """Return milliseconds, in four bytes if these hold the microseconds shown on hover."""
    taken_ms = taken_ns / 1e6
    return taken_ms.astype(np.float32) if taken_ns.max() < EXACT_NS else taken_ms


FIGURE = FigureKind(
    name="budget",
    title="Where the sender's time went",
    scope="connection",
    page=__doc__ or "",
    draw=draw,
    is_in_timeline=True,
    order=12,
)
