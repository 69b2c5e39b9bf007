"""The page of a connection: figures on one time axis, findings, measurements, references, events and segments."""

import asyncio
from typing import Annotated, Any, Literal, get_args

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from fastapi.templating import Jinja2Templates

from tcpwin import figures
from tcpwin.figures import LIFE_COLUMNS, FigureKind
from tcpwin.render import EVIDENCE, measures, percentiles
from tcpwin_web.api.connections import find_elsewhere
from tcpwin_web.api.parts import ConnectionId, Detailed, ServiceOf
from tcpwin_web.jobs.detail import REFERENCE_PREFIX, is_compared
from tcpwin_web.jobs.drawing import TIMELINE
from tcpwin_web.pages.filters import may
from tcpwin_web.pages.parts import settings_of, show
from tcpwin_web.results import layout, queries

PAGE_FINDINGS = 50
TabName = Literal["findings", "exchanges", "budget", "measured", "references", "hosts", "events", "segments", "notes"]
TITLES = {"budget": "Where the time went", "exchanges": "Requests and answers"}
"""Titles of tabs that are not their names."""


def routes(templates: Jinja2Templates) -> APIRouter:
    """Create the route."""
    router = APIRouter()

    @router.get("/captures/{capture_id}/connections/{connection_id}")
    async def show_connection(
        request: Request,
        service: ServiceOf,
        capture: Detailed,
        connection_id: ConnectionId,
        tab: Annotated[TabName | None, Query()] = None,
    ) -> Response:
        folder = service.data.results(capture.id)
        place = folder / layout.connection(connection_id)
        document, overview, (findings, _), drawn, life = await asyncio.gather(
            asyncio.to_thread(queries.read_document, place, layout.CONNECTION),
            asyncio.to_thread(queries.read_document, place, layout.VIEW),
            asyncio.to_thread(
                queries.list_findings,
                folder,
                connection=connection_id,
                limit=PAGE_FINDINGS,
                has_view=True,
            ),
            asyncio.to_thread(queries.read_figures, place),
            asyncio.to_thread(queries.read_document, place, layout.LIFE),
        )
        verdict = document["verdict"]
        timeline = drawn.get(TIMELINE, {}).get("meta", {})
        compared, kinds = _kinds()
        notes = await service.notes.list(capture.id, connection=connection_id)
        hidden = {
            "exchanges": not overview["exchanges"],
            "hosts": not document["snapshot_count"],
            "notes": not notes and not may(request, "upload"),
        }
        tabs = {name: TITLES.get(name, name.capitalize()) for name in get_args(TabName) if not hidden.get(name)}
        if tab is None or tab not in tabs:
            # The address of a frame, without a span, leads to its row.
            query = request.query_params
            tab = "segments" if "frame" in query and "start_ns" not in query else "findings"
        return show(
            templates,
            request,
            "connection.html",
            capture=capture,
            connection=document,
            evidence=EVIDENCE,
            elsewhere=await find_elsewhere(service, capture, document),
            findings=findings,
            measures=measures(document),
            percentiles=percentiles(document),
            panels=[kind for kind in kinds if kind.has_time_axis and not _is_empty(kind, verdict["limit"], timeline)],
            others=[kind for kind in kinds if not kind.has_time_axis],
            compared=[kind for kind in compared if is_compared(kind.name, document["comparison"])],
            overview=overview,
            busier=timeline.get("direction", "a_to_b"),
            drawn=drawn,
            life=life,
            life_columns=LIFE_COLUMNS,
            notes=notes,
            tab=tab,
            tabs=tabs,
            settings=settings_of(verdict, findings),
            rules=sorted({each["code"] for each in findings}),
        )

    return router


def _kinds() -> tuple[list[FigureKind], list[FigureKind]]:
    """Return the figures that compare a connection with a reference on shared axes, and all others."""
    kinds = [figures.get(name) for name in figures.names("connection")]
    compared = [kind for kind in kinds if kind.name.startswith(REFERENCE_PREFIX)]
    return compared, [kind for kind in kinds if kind not in compared]


def _is_empty(kind: FigureKind, limit: str, timeline: dict[str, Any]) -> bool:
    """Whether the timeline left a figure out because it has nothing to show."""
    shown = timeline.get("figures")
    return shown is not None and kind.is_shown_of(limit) and kind.name not in shown
