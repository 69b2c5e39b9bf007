"""For operators: health, metrics and the audit log."""

from typing import Annotated

from fastapi import APIRouter, HTTPException, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, Field

from tcpwin_web import metrics
from tcpwin_web.api.parts import Limit, Offset, ServiceOf

router = APIRouter(tags=["operation"])
api = APIRouter(tags=["operation"])


class Health(BaseModel):
    """The service is alive."""

    status: str


class AuditEntry(BaseModel):
    """One action of a caller."""

    id: int
    at_ns: int
    action: str
    subject: str | None
    actor: str
    address: str | None
    login: Annotated[str | None, Field(description="the same for all actions of one login")]
    link: Annotated[str | None, Field(description="the share link that was created, revoked, or opened")]
    token: Annotated[str | None, Field(description="the API token that the caller showed, or logged in with")]


class AuditList(BaseModel):
    """Entries of the audit log, newest first."""

    entries: list[AuditEntry]


@router.get("/healthz")
async def health() -> Health:
    """Return 200 while the process is alive."""
    return Health(status="ok")


@router.get("/readyz", responses={503: {"description": "not ready"}})
async def readiness(service: ServiceOf) -> Health:
    """Check that the service can work: its database, its disk, its workers, and room for more requests."""
    if reason := await service.readiness.reason():
        raise HTTPException(503, reason, {"Retry-After": "5"})
    return Health(status="ready")


@router.get("/metrics", response_class=Response)
async def show_metrics(service: ServiceOf) -> Response:
    """Return counters and times in Prometheus format."""
    metrics.FREE_BYTES.set(service.data.free_bytes)
    for kind, slots in service.slots.items():
        metrics.WAITING.labels(kind).set(slots.waiting)
        metrics.TAKEN.labels(kind).set(slots.taken)
    return Response(generate_latest(metrics.REGISTRY), media_type=CONTENT_TYPE_LATEST)


@api.get("/audit")
async def list_audit(service: ServiceOf, offset: Offset = 0, limit: Limit = 100) -> AuditList:
    """List the audit log, newest first."""
    rows = await service.audit.list(offset=offset, limit=limit)
    names = AuditEntry.model_fields
    return AuditList(entries=[AuditEntry(**{name: getattr(row, name) for name in names}) for row in rows])
