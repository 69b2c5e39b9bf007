"""A waterfall of exchanges: whose time passed between a request and the end of its answer.

Each row is one request with its answer, as the client sees them:

- **client**: from the last answer to the request. **request**: from the request's first to its last segment.
- **path**: one round trip. **server**: from when the server had the request to the first byte of the answer.
- **answer**: from the first to the last segment of the answer.

The note has each side's share of the time. Of many exchanges, the longest are drawn; zooming shows others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpwin.figures.drawing.kind import FigureKind, Nothing
from tcpwin.figures.drawing.panel import Panel
from tcpwin.figures.drawing.theme import CONGESTION, FLIGHT, GREY, INDIGO, SLATE, pattern_fill
from tcpwin.units import count_text, share_text, time_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tcpwin.analysis import Table
    from tcpwin.figures.drawing.request import Request

PARTS = (
    ("client", "think_ns", GREY, "."),
    ("request", "request_ns", CONGESTION, "/"),
    ("path", "path_ns", SLATE, "x"),
    ("server", "work_ns", INDIGO, ""),
    ("answer", "transfer_ns", FLIGHT, "\\"),
)
"""Parts of a row in order: name, column, colour and pattern."""
ROWS = 40
"""Maximum number of rows."""
HEIGHT = 0.8
TICKS = 8
_NO_EXCHANGE = {
    "interleaved": "both sides send at any time, so exchanges cannot be determined",
    "scheduled": "the server sends at even times, whenever it was asked",
    "one_sided": "neither side answers the other",
    "overlapping": "several requests were under way, and their answers may be in another order",
}


def draw(request: Request) -> Panel:
    """Draw the longest exchanges of the span, the first on top."""
    connection = request.connection
    if not connection.exchanges:
        raise Nothing(_NO_EXCHANGE.get(connection.turns_state, "no request was answered"))
    table = connection.exchange_table()
    spent = {name: table[column] for name, column, _, _ in PARTS}
    ends = table["start_ns"] + sum(spent.values()) - spent["client"]
    inside = np.flatnonzero((ends >= request.start_ns) & (table["start_ns"] - spent["client"] <= request.end_ns))
    if not len(inside):
        raise Nothing("no exchange in this span of time")
    lengths = (ends - table["start_ns"])[inside]
    rows = np.sort(inside[np.argsort(-lengths, kind="stable")[: min(ROWS, request.marks)]])
    count = len(rows)
    step = -(-count // TICKS)
    panel = Panel(
        y={
            "range": [-0.1, count],
            "tickmode": "array",
            "tickvals": [count - 1 - place + HEIGHT / 2 for place in range(0, count, step)],
            "ticktext": [f"frame {int(table['request_frame'][row])}" for row in rows[::step]],
            "showgrid": False,
            "fixedrange": True,
        },
        layout={"barmode": "overlay"},
        notes=[_shares(spent, inside)] + ([f"The {count} longest of {len(inside):,}."] if count < len(inside) else []),
    )
    begin = table["start_ns"][rows] - spent["client"][rows]
    lanes = np.arange(count - 1, -1, -1)
    for name, _, colour, pattern in PARTS:
        taken = spent[name][rows]
        chosen = taken > 0
        if chosen.any():
            panel.traces.append(
                {
                    "type": "bar",
                    "name": name,
                    "x": request.seconds(begin[chosen]),
                    "width": taken[chosen] / 1e9,
                    "offset": 0,
                    "base": lanes[chosen].astype(np.float32),
                    "y": np.full(int(chosen.sum()), HEIGHT, dtype=np.float32),
                    "customdata": _hover(table, rows[chosen], taken[chosen]),
                    "marker": pattern_fill(pattern, colour, request.theme.background),
                    "hovertemplate": f"{name}: %{{customdata}}<extra></extra>",
                }
            )
        begin = begin + taken
    return panel


def _shares(spent: dict[str, NDArray[np.int64]], inside: NDArray[np.intp]) -> str:
    """Return each side's share of the time of all exchanges in the span."""
    sums = {name: int(taken[inside].sum()) for name, taken in spent.items()}
    whole_ns = max(sum(sums.values()), 1)
    shares = ", ".join(f"{name} {share_text(taken_ns / whole_ns)}" for name, taken_ns in sums.items() if taken_ns)
    return f"{count_text(len(inside), 'exchange')} in {time_text(whole_ns)}: {shares}."


def _hover(table: Table, rows: NDArray[np.intp], taken: NDArray[np.int64]) -> list[str]:
    frames = zip(table["request_frame"][rows].tolist(), table["answer_frame"][rows].tolist(), strict=True)
    return [
        f"{time_text(taken_ns)}, request in frame {asked}, answer in frame {answered}"
        for taken_ns, (asked, answered) in zip(taken.tolist(), frames, strict=True)
    ]


FIGURE = FigureKind(
    name="exchanges",
    title="Requests and answers",
    scope="connection",
    page=__doc__ or "",
    draw=draw,
    has_directions=False,
    limits=frozenset({"round_trips", "requester_application"}),
    order=75,
)
