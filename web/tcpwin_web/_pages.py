"""The pages: captures, and one capture's connections with a figure of the worst.

Server-rendered; a page of a huge capture stays small, and says how much it leaves out.
"""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from fastapi.templating import Jinja2Templates

from tcpwin_web._flow import worst_flow
from tcpwin_web._lookup import AnalysisOfPath, CaptureOfPath, ShownCaptures

SHOWN_CONNECTIONS = 200


def routes(templates: Jinja2Templates) -> APIRouter:
    """Make the routes of the pages, drawn with the given templates."""
    router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)

    @router.get("/")
    def show_captures(request: Request, captures: ShownCaptures) -> HTMLResponse:
        return templates.TemplateResponse(request, "captures.html", {"captures": list(captures)})

    @router.get("/captures/{capture_id}")
    def show_capture(request: Request, capture: CaptureOfPath, analysis: AnalysisOfPath) -> HTMLResponse:
        return templates.TemplateResponse(
            request,
            "capture.html",
            {
                "capture": capture,
                "connections": len(analysis.connections),
                "flows": [worst_flow(connection) for connection in analysis.worst(SHOWN_CONNECTIONS)],
                "warnings": analysis.capture.warnings,
            },
        )

    return router


def add_filters(templates: Jinja2Templates) -> None:
    """Give the templates their ways to write a number."""
    templates.env.filters.update(bytes=_bytes, seconds=_seconds)


def _bytes(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f} B"


def _seconds(value_ns: int) -> str:
    return f"{value_ns / 1e9:,.3f} s"
