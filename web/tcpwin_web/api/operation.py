"""For operators: whether the service is well, what it does, who did what."""

import asyncio

from fastapi import APIRouter, HTTPException, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel
from sqlalchemy.exc import SQLAlchemyError

from tcpwin_web import metrics
from tcpwin_web.api.parts import Limit, Offset, ServiceOf

router = APIRouter(tags=["operation"])
api = APIRouter(tags=["operation"])

LEAST_FREE_BYTES = 64 << 20
DATABASE_SECONDS = 5


class Health(BaseModel):
    """The service answers."""

    status: str


class AuditEntry(BaseModel):
    """One thing that somebody did."""

    id: int
    at_ns: int
    action: str
    subject: str | None
    actor: str
    address: str | None


class AuditList(BaseModel):
    """What was done, the newest first."""

    entries: list[AuditEntry]


@router.get("/healthz")
async def health() -> Health:
    """Say that the service answers."""
    return Health(status="ok")


@router.get("/readyz", responses={503: {"description": "not ready"}})
async def readiness(service: ServiceOf) -> Health:
    """Say whether the service can do its work: started, its database there, room on its disk."""
    if not service.is_ready:
        raise HTTPException(503, "The service is starting or stopping; try again.")
    try:
        await asyncio.wait_for(service.database.check(), DATABASE_SECONDS)
    except (SQLAlchemyError, OSError, TimeoutError):
        raise HTTPException(503, "The database does not respond.") from None
    if service.data.free_bytes < LEAST_FREE_BYTES:
        raise HTTPException(503, "The disk is nearly full.")
    return Health(status="ready")


@router.get("/metrics", response_class=Response)
async def show_metrics(service: ServiceOf) -> Response:
    """Counters and times, as Prometheus reads them."""
    metrics.FREE_BYTES.set(service.data.free_bytes)
    return Response(generate_latest(metrics.REGISTRY), media_type=CONTENT_TYPE_LATEST)


@api.get("/audit")
async def list_audit(service: ServiceOf, offset: Offset = 0, limit: Limit = 100) -> AuditList:
    """Who did what, the newest first."""
    rows = await service.audit.list(offset=offset, limit=limit)
    names = AuditEntry.model_fields
    return AuditList(entries=[AuditEntry(**{name: getattr(row, name) for name in names}) for row in rows])
