"""For operators: whether the service is well, what it does, who did what."""

from typing import Annotated

from fastapi import APIRouter, HTTPException, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, Field

from tcpwin_web import metrics
from tcpwin_web.api.parts import Limit, Offset, ServiceOf

router = APIRouter(tags=["operation"])
api = APIRouter(tags=["operation"])


class Health(BaseModel):
    """The service answers."""

    status: str


class AuditEntry(BaseModel):
    """One thing that somebody did or saw."""

    id: int
    at_ns: int
    action: str
    subject: str | None
    actor: str
    address: str | None
    login: Annotated[str | None, Field(description="the same for all that one login did")]
    link: Annotated[str | None, Field(description="the share link that was made, revoked, or opened")]
    token: Annotated[str | None, Field(description="the API token that the caller showed, or logged in with")]


class AuditList(BaseModel):
    """What was done, the newest first."""

    entries: list[AuditEntry]


@router.get("/healthz")
async def health() -> Health:
    """Say that the service answers."""
    return Health(status="ok")


@router.get("/readyz", responses={503: {"description": "not ready"}})
async def readiness(service: ServiceOf) -> Health:
    """Say whether the service can do its work now: its database, its disk, its workers, and room for more requests."""
    if reason := await service.readiness.reason():
        raise HTTPException(503, reason, {"Retry-After": "5"})
    return Health(status="ready")


@router.get("/metrics", response_class=Response)
async def show_metrics(service: ServiceOf) -> Response:
    """Counters and times, as Prometheus reads them."""
    metrics.FREE_BYTES.set(service.data.free_bytes)
    for kind, places in service.places.items():
        metrics.WAITING.labels(kind).set(places.waiting)
        metrics.TAKEN.labels(kind).set(places.taken)
    return Response(generate_latest(metrics.REGISTRY), media_type=CONTENT_TYPE_LATEST)


@api.get("/audit")
async def list_audit(service: ServiceOf, offset: Offset = 0, limit: Limit = 100) -> AuditList:
    """Who did what, the newest first."""
    rows = await service.audit.list(offset=offset, limit=limit)
    names = AuditEntry.model_fields
    return AuditList(entries=[AuditEntry(**{name: getattr(row, name) for name in names}) for row in rows])
