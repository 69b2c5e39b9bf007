"""API v1: captures, an analysis and a figure as JSON."""

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict

from tcpwin_web import _figure, _problems
from tcpwin_web._flow import worst_flow
from tcpwin_web._lookup import AnalysisOfPath, ConnectionOfPath, ShownCaptures

router = APIRouter()


class CaptureEntry(BaseModel):
    """One capture in the list."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"id": "slow-reader", "name": "slow-reader.pcap.gz", "size_bytes": 48213}]}
    )

    id: str
    name: str
    size_bytes: int


class CaptureList(BaseModel):
    """The captures shown, in the order given to the service."""

    captures: list[CaptureEntry]


class Health(BaseModel):
    """The service answers."""

    status: str


@router.get("/healthz")
def health() -> Health:
    """Say that the service answers."""
    return Health(status="ok")


@router.get("/api/v1/captures")
def list_captures(captures: ShownCaptures) -> CaptureList:
    """List the captures."""
    return CaptureList(
        captures=[CaptureEntry(id=each.id, name=each.name, size_bytes=each.size_bytes) for each in captures]
    )


@router.get("/api/v1/captures/{capture_id}", responses=_problems.RESPONSES)
def show_analysis(analysis: AnalysisOfPath) -> Response:
    """Return the whole analysis, in the schema of `tcpwin analyze --json`."""
    return Response(analysis.to_json(), media_type="application/json")


@router.get("/api/v1/captures/{capture_id}/connections/{connection_id}/figure", responses=_problems.RESPONSES)
def show_figure(connection: ConnectionOfPath) -> Response:
    """Return a plotly figure of receive window and bytes in flight, in the direction held back more."""
    figure = _figure.draw_window_and_flight(worst_flow(connection))
    return Response(figure.to_json(), media_type="application/json")
