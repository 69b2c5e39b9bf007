"""The audit log: who read, shared, changed and deleted what, as rows. It holds ids only.

Changes are logged before they are answered. Reads are logged within seconds, and at most once a minute for the same
caller and subject: no reader waits for a write, and none can flood the log.
"""

import asyncio
import time
from collections.abc import Sequence

from fastapi import Request
from sqlalchemy import delete, func, select
from sqlalchemy.exc import SQLAlchemyError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tcpwin_web.limiting import address_of
from tcpwin_web.storage import Database
from tcpwin_web.storage.models import Audit, now_ns
from tcpwin_web.storage.reserve import Reserve

RETENTION_DAYS = 365
MOST_ROWS = 1_000_000
"""About 200 MB; beyond, the oldest are deleted first."""
DAY_NS = 86_400 * 10**9
WRITE_SECONDS = 2.0
SAME_SECONDS = 60.0
MOST_WAITING = 10_000
"""Maximum number of reads remembered while the database is unavailable."""

READ = {
    "show_report": "report.read",
    "list_audit": "audit.read",
    "list_tokens": "tokens.list",
    "show_tokens": "tokens.list",
    "list_captures": "captures.list",
    "show_captures": "captures.list",
    "search": "captures.search",
    "show_search": "captures.search",
    "show_history": "captures.search",
}
NOT_READ = ("watch_analysis",)
COMPARED = ("old", "new", "a", "b")
"""Query parameters of comparisons of two captures."""


class AuditLog:
    """Writes and lists the rows."""

    def __init__(self, database: Database, reserve: Reserve) -> None:
        self._database = database
        self._reserve = reserve
        self._seen: list[Audit] = []
        self._last: dict[tuple[str | None, ...], float] = {}
        self._writing = asyncio.Lock()

    async def note(self, request: Request, action: str, subject: str | None = None, *, link: str | None = None) -> None:
        """Log an action of a request's caller."""

        async def write() -> None:
            async with self._database.change() as session:
                session.add(_entry(request, action, subject, link))

        await self._reserve.spend(write)

    def seen(
        self,
        request: Request,
        action: str,
        subject: str | None = None,
        *,
        link: str | None = None,
        is_each_noted: bool = False,
    ) -> None:
        """Remember what a request's caller read or was refused, for `write`.

        Args:
            is_each_noted: also repetitions within `SAME_SECONDS`.
        """
        entry = _entry(request, action, subject, link)
        same = (entry.action, entry.subject, entry.actor, entry.address, entry.login, entry.link, entry.token)
        now = time.monotonic()
        is_repeated = not is_each_noted and now - self._last.get(same, -SAME_SECONDS) < SAME_SECONDS
        if is_repeated or len(self._seen) >= MOST_WAITING:
            return
        self._last[same] = now
        self._seen.append(entry)

    async def write(self) -> None:
        """Log the reads since the last time."""
        now = time.monotonic()
        self._last = {same: at for same, at in self._last.items() if now - at < SAME_SECONDS}
        # Wait for a write in progress, so that its entries are visible to this caller as well.
        async with self._writing:
            entries, self._seen = self._seen, []
            if not entries:
                return
            try:
                async with self._database.change() as session:
                    session.add_all(entries)
            except SQLAlchemyError:
                # The disk may be full, or the database unavailable: keep the entries, within bounds.
                self._seen = [*(_copied(each) for each in entries), *self._seen][:MOST_WAITING]
                raise

    async def keep_writing(self) -> None:
        """Keep writing until the service ends."""
        while True:
            try:
                await self.write()
            except SQLAlchemyError as error:
                self._database.note_failure(error)
            await asyncio.sleep(WRITE_SECONDS)

    async def list(self, *, offset: int, limit: int) -> Sequence[Audit]:
        """Return rows, newest first."""
        async with self._database.begin() as session:
            return (await session.scalars(select(Audit).order_by(Audit.id.desc()).offset(offset).limit(limit))).all()

    async def sweep(self) -> None:
        """Delete rows older than `RETENTION_DAYS`, and the oldest beyond `MOST_ROWS`."""
        async with self._database.change() as session:
            await session.execute(delete(Audit).where(Audit.at_ns < now_ns() - RETENTION_DAYS * DAY_NS))
            newest = await session.scalar(select(func.max(Audit.id)))
            await session.execute(delete(Audit).where(Audit.id <= (newest or 0) - MOST_ROWS))


class Seen:
    """ASGI middleware: log what was read, by endpoint. Share links are logged where they are opened."""

    def __init__(self, app: ASGIApp, audit: AuditLog) -> None:
        self._app = app
        self._audit = audit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return

        async def watch(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 300:
                self._note(Request(scope))
            await send(message)

        await self._app(scope, receive, watch)

    def _note(self, request: Request) -> None:
        endpoint = getattr(request.scope.get("endpoint"), "__name__", None)
        if endpoint in NOT_READ:
            return
        action = READ.get(endpoint or "", "capture.read")
        of_path = request.path_params.get("capture_id")
        subjects = [of_path] if of_path else [request.query_params.get(name) for name in COMPARED]
        for subject in [each for each in subjects if each] or ([None] if endpoint in READ else []):
            self._audit.seen(request, action, subject)


def _entry(request: Request, action: str, subject: str | None, link: str | None) -> Audit:
    state = request.scope.get("state", {})
    return Audit(
        at_ns=now_ns(),
        action=action,
        subject=subject,
        actor="share" if state.get("is_guest") else state.get("actor", "nobody"),
        address=address_of(request),
        login=state.get("login"),
        link=link,
        token=state.get("token"),
    )


def _copied(entry: Audit) -> Audit:
    """Copy a row: one that could not be written belongs to the session that failed."""
    columns = (column.key for column in Audit.__table__.columns if column.key != "id")
    return Audit(**{name: getattr(entry, name) for name in columns})
