"""Who did what, as rows. Ids only: of what was deleted nothing else stays."""

from collections.abc import Sequence

from fastapi import Request
from sqlalchemy import delete, select

from tcpwin_web.security.limiting import address_of
from tcpwin_web.storage import Database
from tcpwin_web.storage.models import Audit, now_ns

KEPT_DAYS = 365
DAY_NS = 86_400 * 10**9


class AuditLog:
    """Writes and lists the rows."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def note(self, request: Request, action: str, subject: str | None = None) -> None:
        """Write down what the caller of a request did."""
        actor = getattr(request.state, "actor", "nobody")
        async with self._database.begin() as session:
            session.add(Audit(action=action, subject=subject, actor=actor, address=address_of(request)))

    async def list(self, *, offset: int, limit: int) -> Sequence[Audit]:
        """Rows, the newest first."""
        async with self._database.begin() as session:
            return (await session.scalars(select(Audit).order_by(Audit.id.desc()).offset(offset).limit(limit))).all()

    async def sweep(self) -> None:
        """Delete rows older than `KEPT_DAYS`."""
        async with self._database.begin() as session:
            await session.execute(delete(Audit).where(Audit.at_ns < now_ns() - KEPT_DAYS * DAY_NS))
