"""Connections: pages of all of them, and series, events, stalls, segments and samples of one."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from tcpwin.model import DirectionName, LimitName
from tcpwin_web.api.model import Verdict
from tcpwin_web.api.parts import (
    ARROW_RESPONSE,
    MAX_OFFSET,
    Analysed,
    ConnectionId,
    Detailed,
    EndNs,
    Format,
    Having,
    Limit,
    Offset,
    ServiceOf,
    StartNs,
    Words,
    arrow,
    as_json,
    check_span,
    wants_arrow,
)
from tcpwin_web.results import layout, queries
from tcpwin_web.service import Service
from tcpwin_web.storage.models import Capture

router = APIRouter(prefix="/captures/{capture_id}/connections", tags=["connections"])
ONE = "/{connection_id}"


class ConnectionRow(BaseModel):
    """A connection as lists show it: the requested columns, with those of its verdict as one object."""

    model_config = ConfigDict(extra="allow")

    id: int
    verdict: Verdict


class ConnectionList(BaseModel):
    """A page of connections."""

    total: Annotated[int, Field(description="connections that meet the conditions")]
    connections: list[ConnectionRow]


@dataclass(frozen=True)
class Span:
    """Rows between two times."""

    start_ns: StartNs = None
    end_ns: EndNs = None
    offset: Offset = 0
    limit: Limit = 1000

    def __post_init__(self) -> None:
        check_span(self.start_ns, self.end_ns)


Part = Annotated[Span, Depends()]


@router.get("", responses=ARROW_RESPONSE, response_model=ConnectionList)
async def list_connections(
    service: ServiceOf,
    request: Request,
    capture: Analysed,
    search: Annotated[Words, Query(max_length=100, description="a part of address:port of either end")] = "",
    where: Annotated[
        list[Annotated[str, Query(max_length=200)]] | None,
        Query(max_length=20, description="conditions; all must hold", examples=[["verdict.limit=path_loss"]]),
    ] = None,
    sort: Annotated[
        str, Query(max_length=100, description="`worst`, or a column; with a leading - in descending order")
    ] = queries.WORST,
    limited_by: Annotated[LimitName | None, Query(description="connections with this limit")] = None,
    problem: Annotated[bool | None, Query(description="connections with a problem (true) or without (false)")] = None,
    column: Annotated[list[str] | None, Query(max_length=100, description="columns to return; all by default")] = None,
    offset: Offset = 0,
    limit: Limit = 100,
    format: Format = None,
) -> Response:
    """List connections with their verdicts; by default those that lost most time to a problem come first."""
    page = await asyncio.to_thread(
        queries.list_connections,
        service.data.results(capture.id),
        search=search,
        where=[*(where or ()), *verdict_conditions(limited_by, problem)],
        sort=sort,
        offset=offset,
        limit=limit,
        columns=column or (),
    )
    if wants_arrow(request, format):
        return arrow(page.rows, **{"X-Total": page.total})
    return await asyncio.to_thread(_as_list, page)


def _as_list(page: queries.Page) -> Response:
    """Answer with many rows, which takes too long for the event loop."""
    rows = queries.rows_json(page.rows)
    return Response(f'{{"total": {page.total}, "connections": {rows}}}', media_type="application/json")


@router.get(ONE)
async def show_connection(service: ServiceOf, capture: Detailed, connection_id: ConnectionId) -> Response:
    """Return all measurements of one connection: fields, verdict, budget, stalls, percentiles, nearest references."""
    return as_json(await _document(service, capture.id, connection_id, layout.CONNECTION))


@router.get(ONE + "/elsewhere")
async def list_elsewhere(service: ServiceOf, capture: Detailed, connection_id: ConnectionId) -> Response:
    """Return the same connection in the other captures of its bundle, such as that of its other end."""
    document = await _document(service, capture.id, connection_id, layout.CONNECTION)
    found = [
        {"capture_id": other.id, "name": other.name, "connection": number}
        for other, number in await find_elsewhere(service, capture, document)
    ]
    return as_json({"elsewhere": found})


@router.get(ONE + "/series/{name}", responses=ARROW_RESPONSE)
async def show_series(
    service: ServiceOf,
    request: Request,
    capture: Having,
    connection_id: ConnectionId,
    name: str,
    direction: DirectionName = "a_to_b",
    start_ns: StartNs = None,
    end_ns: EndNs = None,
    points: Annotated[int, Query(ge=1, le=20_000, description="buckets at most")] = 1000,
    format: Format = None,
) -> Response:
    """Return a series between two times as extremes per bucket; `width_ns` is 1 for single samples."""
    check_span(start_ns, end_ns)
    span = await asyncio.to_thread(
        queries.read_series,
        await service.queue.series(capture.id, connection_id),
        name,
        direction,
        start_ns=start_ns,
        end_ns=end_ns,
        points=points,
    )
    if wants_arrow(request, format):
        return arrow(span.to_frame(), **{"X-Width-Ns": span.width_ns})
    values = {column: array.tolist() for column, array in span.columns.items()}
    return as_json({"name": name, "direction": direction, "width_ns": span.width_ns, **values})


@router.get(ONE + "/events")
async def list_events(service: ServiceOf, capture: Detailed, connection_id: ConnectionId, part: Part) -> Response:
    """Return segments with events, in order."""
    found = await _document(service, capture.id, connection_id, layout.EVENTS)
    return _send_part("events", queries.within(found, "time_ns", "time_ns", part.start_ns, part.end_ns), part)


@router.get(ONE + "/stalls")
async def list_stalls(service: ServiceOf, capture: Detailed, connection_id: ConnectionId, part: Part) -> Response:
    """Return long silences with their causes."""
    document = await _document(service, capture.id, connection_id, layout.CONNECTION)
    stalls = queries.within(document["stalls"], "start_ns", "end_ns", part.start_ns, part.end_ns)
    return _send_part("stalls", stalls, part)


@router.get(ONE + "/snapshots")
async def list_samples(service: ServiceOf, capture: Detailed, connection_id: ConnectionId, part: Part) -> Response:
    """Return the host samples of this connection's sockets; times are on the capture's clock."""
    found = await _document(service, capture.id, connection_id, layout.SNAPSHOTS)
    return _send_part("snapshots", queries.within(found, "time_ns", "time_ns", part.start_ns, part.end_ns), part)


@router.get(ONE + "/segments", responses=ARROW_RESPONSE)
async def list_segments(
    service: ServiceOf,
    request: Request,
    capture: Detailed,
    connection_id: ConnectionId,
    part: Part,
    frame: Annotated[
        int | None, Query(ge=1, le=MAX_OFFSET, description="return the rows around this frame, instead of an offset")
    ] = None,
    format: Format = None,
) -> Response:
    """Return the per-segment table between two times: the columns of `tcpwin packets`."""
    page = await asyncio.to_thread(
        queries.list_segments,
        service.data.results(capture.id),
        connection_id,
        start_ns=part.start_ns,
        end_ns=part.end_ns,
        offset=part.offset,
        limit=part.limit,
        frame=frame,
    )
    if wants_arrow(request, format):
        return arrow(page.rows, **{"X-Total": page.total, "X-Offset": page.offset})
    return as_json({"total": page.total, "offset": page.offset, "segments": page.rows.to_dicts()})


def verdict_conditions(limited_by: str | None, problem: bool | None) -> list[str]:
    """Translate query parameters into conditions on verdicts for `queries.list_connections`."""
    conditions = [f"verdict.limit={limited_by}"] if limited_by else []
    if problem is not None:
        conditions.append(f"verdict.is_problem={str(problem).lower()}")
    return conditions


async def find_elsewhere(service: Service, capture: Capture, document: Mapping[str, Any]) -> list[tuple[Capture, int]]:
    """Find a connection in the other captures of its bundle: captures with the connection's number there."""
    found = []
    for other in await service.captures.of_bundle(capture):
        if other.has_results:
            folder = service.data.results(other.id)
            number = await asyncio.to_thread(queries.find_connection, folder, document)
            if number is not None:
                found.append((other, number))
    return found


def _send_part(name: str, rows: Sequence[Any], part: Span) -> Response:
    return as_json({"total": len(rows), name: rows[part.offset : part.offset + part.limit]})


async def _document(service: ServiceOf, capture_id: str, connection_id: int, name: str) -> Any:
    folder = service.data.results(capture_id) / layout.connection(connection_id)
    return await asyncio.to_thread(queries.read_document, folder, name)
