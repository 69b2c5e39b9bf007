"""Two connections, one above the other on the same axes: the same workload before and after a change.

In: a kind of figure with a time axis, two connections. Out: ``data`` and ``layout`` of a plotly figure; both begin at
zero and zoom together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tcpwin.analysis import DirectionName
from tcpwin.figures.drawing.compose import compose, nothing, title_height, title_text
from tcpwin.figures.drawing.kind import Nothing
from tcpwin.figures.drawing.request import make_request
from tcpwin.figures.drawing.size import fit
from tcpwin.figures.drawing.text import escape
from tcpwin.limits import role_of
from tcpwin.units import name_text

if TYPE_CHECKING:
    from tcpwin.figures.drawing.kind import FigureKind
    from tcpwin.figures.drawing.request import Request
    from tcpwin.limits import Connection

UPPER, LOWER = "y2", "yaxis4"


def draw_pair(
    kind: FigureKind,
    connections: Sequence[tuple[str, Connection]],
    *,
    direction: DirectionName,
    points: int,
    theme: str,
) -> dict[str, Any]:
    """Draw one kind of figure for two connections, each under its name; omit one with nothing to show.

    Raises:
        ArgumentError: an unknown option.
    """
    options: dict[str, Any] = {"direction": direction, "start_ns": None, "end_ns": None}
    requests = [
        make_request(connection, kind.scope, points=points, theme=theme, **options) for _, connection in connections
    ]
    names = [name for name, _ in connections]

    def drawn(first: Request) -> dict[str, Any]:
        share = first.points / points
        return _draw_all(kind, [(name, each.with_less(share)) for name, each in zip(names, requests, strict=True)])

    return fit(requests[0], drawn)


def _draw_all(kind: FigureKind, requests: Sequence[tuple[str, Request]]) -> dict[str, Any]:
    panels, shown, reason = [], [], ""
    for name, request in requests:
        try:
            # Of a figure of several panels, draw the first: with all of them, counterparts would not be adjacent.
            panel = replace(kind.draw(request), heading="", below=[])
            panels.append((replace(kind, title=escape(name_text(name))), panel))
            shown.append(request)
        except Nothing as empty:
            reason = empty.reason
    if not shown:
        return nothing(request, kind, reason)
    figure = compose(shown[0], panels)
    layout = figure["layout"]
    seconds = max(each.seconds(each.end_ns) for each in shown)
    layout["xaxis"] = {
        **layout["xaxis"],
        "title": {**layout["xaxis"]["title"], "text": "s since each connection began"},
        "range": [-0.01 * seconds, 1.01 * seconds],
    }
    before = layout["title"]
    layout["title"] = {
        **layout["title"],
        # A phone has no room for both on one line.
        "text": title_text(
            [f"<b>{kind.title}</b>", f"data of the {role_of(shown[0].connection, request.sender)}"],
            request.theme.faint_text,
        ),
    }
    top = layout["margin"]["t"] - title_height(before) + title_height(layout["title"])
    layout["margin"] = {**layout["margin"], "t": top}
    if len(shown) == 2:
        layout[LOWER] = {**layout[LOWER], "matches": UPPER}
    return figure
