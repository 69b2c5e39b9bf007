"""Figures of a capture and its hosts, drawn with plotly.

In: a Connection or an Analysis. Out: plotly figures. One module of this package is one kind of figure, found by its
name; a new one needs no other edit. A plain analysis imports nothing from here. plotly is the extra ``plot``.

>>> figure = figures.draw("window", analysis.connections[0], direction="b_to_a")
>>> figure.write_html("window.html")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tcpwin.analysis import DirectionName
from tcpwin.errors import ArgumentError
from tcpwin.figures.drawing.dates import with_dates
from tcpwin.figures.drawing.kind import Nothing
from tcpwin.figures.drawing.request import make_request
from tcpwin.figures.drawing.size import fit
from tcpwin.figures.kinds import all_figures
from tcpwin.figures.svg import draw_still

if TYPE_CHECKING:
    from tcpwin.figures.drawing.kind import FigureKind
    from tcpwin.figures.drawing.request import Request
    from tcpwin.limits import Analysis, Connection


def names(scope: str | None = None) -> list[str]:
    """Return the names of all figures, or of those of a ``connection`` or an ``analysis``, in display order."""
    return [name for name, kind in all_figures().items() if scope in (None, kind.scope)]


def get(name: str) -> FigureKind:
    """Return the kind of figure with this name.

    Raises:
        KeyError: the name is unknown; the message lists the known ones.
    """
    kinds = all_figures()
    if name not in kinds:
        raise KeyError(f"unknown figure {name}: choose one of {', '.join(kinds)}")
    return kinds[name]


def draw(
    name: str,
    subject: Connection | Analysis,
    *,
    direction: DirectionName | None = None,
    start_ns: int | None = None,
    end_ns: int | None = None,
    points: int = 1000,
    theme: str = "light",
    field: str | None = None,
) -> Any:
    """Draw one figure; if there is nothing to draw, the figure gives the reason.

    Args:
        name: one of `names`.
        subject: a subject of the figure's scope. An analysis with one connection, or a connection, in place of its
            analysis, is accepted for the other.
        direction: direction of the data, ``a_to_b`` or ``b_to_a``; by default the one with more data.
        start_ns, end_ns: only this time span, in finer detail; nanoseconds since the epoch.
        points: maximum number of points of a curve.
        theme: ``light`` or ``dark``.
        field: for a figure with a choice: a field of sockets, such as ``rcvbuf_bytes``, or a reference run, such as
            ``lab-bulk-300ms/512m2-stock``.

    Returns:
        A ``plotly.graph_objects.Figure``.

    Raises:
        KeyError: the figure is unknown.
        ArgumentError: another option is unknown, or a span was given for a figure without a time axis.
        SourceError: the source changed, or could be read only once.
    """
    from tcpwin.figures.drawing.compose import wrap_figure

    if not (start_ns is None and end_ns is None) and not get(name).has_time_axis:
        raise ArgumentError(f"figure {name} covers the whole connection: it takes no span")
    options: dict[str, Any] = {"direction": direction, "start_ns": start_ns, "end_ns": end_ns, "points": points}
    return wrap_figure(plain(name, subject, theme=theme, field=field, **options))


def timeline(
    connection: Connection,
    names: Sequence[str] | None = None,
    *,
    direction: DirectionName | None = None,
    start_ns: int | None = None,
    end_ns: int | None = None,
    points: int = 1000,
    theme: str = "light",
) -> Any:
    """Draw several figures of a connection, one above the other, on one time axis with a common zoom.

    Args:
        names: figures from top to bottom; by default those with ``is_in_timeline``, and those about the
            connection's limit. Figures with nothing to show are left out.

    Raises:
        KeyError: a figure is unknown.
        ArgumentError: a figure has no time axis, or another option is unknown.
    """
    from tcpwin.figures.drawing.compose import wrap_figure

    options: dict[str, Any] = {"direction": direction, "start_ns": start_ns, "end_ns": end_ns, "points": points}
    return wrap_figure(plain_timeline(connection, names, theme=theme, **options))


def plain(name: str, subject: Connection | Analysis, *, field: str | None = None, **options: Any) -> dict[str, Any]:
    """Draw the same as `draw` as plain data: ``data`` and ``layout``, with numpy arrays; needs no plotly."""
    from tcpwin.figures.drawing.compose import compose, nothing

    kind = get(name)
    request = make_request(subject, kind.scope, field=field, **options)

    def drawn(request: Request) -> dict[str, Any]:
        try:
            request.check()
            panel = kind.draw(request)
            figure = compose(request, [(kind, panel)])
            return with_dates(request, figure) if kind.has_time_axis and panel.x is None else figure
        except Nothing as empty:
            return nothing(request, kind, empty.reason)

    return fit(request, drawn)


def plain_timeline(connection: Connection, names: Sequence[str] | None = None, **options: Any) -> dict[str, Any]:
    """Draw the same as `timeline` as plain data."""
    from tcpwin.figures.drawing.compose import compose, nothing

    if names is None:
        limit = connection.verdict.limit
        names = [name for name, kind in all_figures().items() if kind.is_shown_of(limit)]
    kinds = [get(name) for name in names]
    for kind in kinds:
        if kind.scope != "connection" or not kind.has_time_axis:
            raise ArgumentError(f"figure {kind.name} has no time axis to share")

    def drawn(request: Request) -> dict[str, Any]:
        panels, reason = [], "no figure was requested"
        for kind in kinds:
            try:
                request.check()
                panels.append((kind, kind.draw(request)))
            except Nothing as empty:
                reason = empty.reason
        if not panels:
            return nothing(request, None, reason)
        figure = compose(request, panels)
        return with_dates(request, figure) if panels[0][1].x is None else figure

    return fit(make_request(connection, "connection", **options), drawn)


def plain_pair(
    name: str, connections: Sequence[tuple[str, Connection]], *, direction: DirectionName, points: int, theme: str
) -> dict[str, Any]:
    """Draw one figure for two connections, one above the other on the same axes: before and after a change.

    Args:
        connections: display name and connection, from top to bottom.

    Raises:
        KeyError: the figure is unknown.
        ArgumentError: it has no time axis, or another option is unknown.
    """
    from tcpwin.figures.drawing.pair import draw_pair

    kind = get(name)
    if kind.scope != "connection" or not kind.has_time_axis:
        raise ArgumentError(f"figure {kind.name} has no time axis to share")
    return draw_pair(kind, connections, direction=direction, points=points, theme=theme)


def still(figure: Mapping[str, Any], *, width: int) -> str:
    """Render a figure as SVG, without plotly or a browser: all that its legend shows at first, without hover texts.

    Args:
        figure: the result of `plain`, `plain_timeline` or `plain_pair`, or its JSON form.
        width: width in pixels; the height is the figure's own.

    Raises:
        ArgumentError: the width leaves no room.
    """
    return draw_still(figure, width=width)
