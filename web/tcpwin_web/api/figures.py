"""Figures as plotly JSON, as `tcpwin plot` draws them, with more detail for shorter spans; or as pictures."""

import asyncio
import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, HTTPException, Query, Response

from tcpwin import figures
from tcpwin.model import DirectionName
from tcpwin_web.api.parts import Analysed, ConnectionId, Detailed, EndNs, ServiceOf, StartNs, as_json
from tcpwin_web.jobs.both_ends import draw_ladder_of
from tcpwin_web.jobs.drawing import POINTS, TIMELINE, FigureQuery, draw_figure, draw_pair
from tcpwin_web.service import Service

router = APIRouter(tags=["figures"])
CAPTURE = "/captures/{capture_id}"

FieldName = Annotated[
    str | None, Query(max_length=60, description="field of socket samples, for figures with a choice of fields")
]
Points = Annotated[int, Query(ge=16, le=4000, description="maximum per curve")]
CaptureQuery = Annotated[str, Query(max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]
ConnectionQuery = Annotated[int, Query(ge=0, le=(1 << 32) - 1)]
ThemeName = Literal["light", "dark"]
SVG = "image/svg+xml"
MOST_WIDTH = 4000
AS_PICTURE: dict[int | str, dict[str, Any]] = {200: {"content": {SVG: {"schema": {"type": "string"}}}}}


@dataclass(frozen=True)
class Form:
    """Output format of a figure."""

    format: Annotated[
        Literal["json", "svg"], Query(description="json: plotly's data; svg: a picture for browsers without scripts")
    ] = "json"
    width: Annotated[
        int, Query(ge=figures.LEAST_WIDTH, le=MOST_WIDTH, description="width of the picture, in pixels")
    ] = 1000


FormAsked = Annotated[Form, Depends()]


@router.get("/figures")
def list_figures() -> Response:
    """List the figures available for captures and for connections."""
    found = [
        {
            "name": kind.name,
            "title": kind.title,
            "summary": kind.summary,
            "scope": {"analysis": "capture"}.get(kind.scope, kind.scope),
            "has_directions": kind.has_directions,
            "has_time_axis": kind.has_time_axis,
            "is_in_timeline": kind.is_in_timeline,
        }
        for kind in map(figures.get, figures.names())
    ]
    return as_json({"figures": found})


@router.get(CAPTURE + "/figures/{name}", responses=AS_PICTURE)
async def show_capture_figure(
    service: ServiceOf,
    capture: Analysed,
    form: FormAsked,
    name: str,
    theme: ThemeName = "light",
    field: FieldName = None,
) -> Response:
    """Return a figure of all connections as plotly's `data` and `layout`."""
    _require(name, "analysis")
    return await draw(service, capture.id, FigureQuery(name, theme=theme, field=field), form)


@router.get(CAPTURE + "/connections/{connection_id}/figures/{name}", responses=AS_PICTURE)
async def show_connection_figure(
    service: ServiceOf,
    capture: Detailed,
    connection_id: ConnectionId,
    form: FormAsked,
    name: str,
    panel: Annotated[
        list[str] | None,
        Query(max_length=10, description="panels of a timeline, from top to bottom", examples=[["window"]]),
    ] = None,
    direction: DirectionName | None = None,
    start_ns: StartNs = None,
    end_ns: EndNs = None,
    points: Points = POINTS,
    theme: ThemeName = "light",
) -> Response:
    """Return a figure of a connection between two times as plotly's JSON; `timeline`: panels on one time axis.

    If there are few segments, each is drawn with its frame. `layout.meta` names the connection, direction and span;
    its `nothing` explains why a figure is empty.
    """
    panels = tuple(panel or ())
    for each in (name, *panels):
        _require(each, "connection", also=TIMELINE if each is name else None)
    if any(not figures.get(each).has_time_axis for each in panels):
        raise HTTPException(422, "Only figures over time can share an axis.")
    query = FigureQuery(name, connection_id, panels, direction, start_ns, end_ns, points, theme)
    if start_ns is not None and end_ns is not None and end_ns <= start_ns:
        raise HTTPException(422, "The span ends before it begins.")
    return await draw(service, capture.id, query, form)


@router.get("/compare/figures/{name}", responses=AS_PICTURE)
async def show_pair_figure(
    service: ServiceOf,
    form: FormAsked,
    name: str,
    old: CaptureQuery,
    new: CaptureQuery,
    old_connection: ConnectionQuery,
    new_connection: ConnectionQuery,
    direction: DirectionName = "a_to_b",
    theme: ThemeName = "light",
) -> Response:
    """Return a figure over time of a connection above its counterpart in another capture, on the same axes."""
    _require(name, "connection")
    if not figures.get(name).has_time_axis:
        raise HTTPException(422, "Only figures over time can share an axis.")
    for capture_id in (old, new):
        await service.captures.get(capture_id)
    file_sets = [await service.queue.file_set(each) for each in (old, new)]
    drawn = await service.queue.run(draw_pair, *file_sets, (old_connection, new_connection), name, direction, theme)
    return await answer(drawn, form)


@router.get("/pair/figure", responses=AS_PICTURE)
async def show_ladder(
    service: ServiceOf,
    form: FormAsked,
    a: CaptureQuery,
    b: Annotated[
        str,
        Query(
            max_length=64,
            pattern=r"^[A-Za-z0-9_-]*$",
            description="the second capture; empty if `a` contains both ends",
        ),
    ] = "",
    connection: ConnectionQuery = 0,
    start_ns: StartNs = None,
    end_ns: EndNs = None,
    theme: ThemeName = "light",
) -> Response:
    """Return the ladder of a connection that both captures contain: two time lines, and each packet between them."""
    captures = (a, b) if b else (a,)
    for capture_id in captures:
        await service.captures.get(capture_id)
    file_sets = [await service.queue.file_set(each) for each in captures]
    drawn = await service.queue.run(draw_ladder_of, file_sets, connection, (start_ns, end_ns), theme)
    return await answer(drawn, form)


async def draw(service: Service, capture_id: str, query: FigureQuery, form: Form = Form()) -> Response:
    """Return the stored figure, or draw it."""
    folder = service.data.results(capture_id)
    drawn = None
    if query.stored_name is not None and (path := folder / query.stored_name).exists():
        drawn = await asyncio.to_thread(path.read_text)
    if drawn is None:
        file_set = await service.queue.file_set(capture_id)
        drawn = await service.queue.run(draw_figure, file_set, str(folder), query)
    return await answer(drawn, form)


async def answer(drawn: str, form: Form) -> Response:
    """Convert a figure's JSON to the requested format."""
    if form.format == "json":
        return Response(drawn, media_type="application/json")
    picture = await asyncio.to_thread(lambda: figures.still(json.loads(drawn), width=form.width))
    return Response(picture, media_type=SVG)


def _require(name: str, scope: str, *, also: str | None = None) -> None:
    if name != also and name not in figures.names(scope):
        known = ", ".join([*figures.names(scope), *([also] if also else [])])
        raise HTTPException(404, f"No such figure; choose one of {known}.")
