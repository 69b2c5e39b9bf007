"""Who saw, shared, changed and deleted what, as rows. Ids only: of what was deleted nothing else stays.

What was done is written down before it is answered. What was seen is written within seconds, once a minute at most for
the same caller and the same thing: a reader waits for no write, and none of them fills the log.
"""

import asyncio
import time
from collections.abc import Sequence

import structlog
from fastapi import Request
from sqlalchemy import delete, func, select
from sqlalchemy.exc import SQLAlchemyError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tcpwin_web.limiting import address_of
from tcpwin_web.storage import Database
from tcpwin_web.storage.models import Audit, now_ns
from tcpwin_web.storage.reserve import Reserve

KEPT_DAYS = 365
MOST_ROWS = 1_000_000
"""About 200 MB; beyond, the oldest go first."""
DAY_NS = 86_400 * 10**9
WRITE_SECONDS = 2.0
SAME_SECONDS = 60.0
MOST_WAITING = 10_000
"""Entries of what was seen, while the database takes none."""

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
"""Of questions about two captures."""

log = structlog.get_logger("tcpwin.audit")


class AuditLog:
    """Writes and lists the rows."""

    def __init__(self, database: Database, reserve: Reserve) -> None:
        self._database = database
        self._reserve = reserve
        self._seen: list[Audit] = []
        self._last: dict[tuple[str | None, ...], float] = {}
        self._writing = asyncio.Lock()

    async def note(self, request: Request, action: str, subject: str | None = None, *, link: str | None = None) -> None:
        """Write down what the caller of a request did."""

        async def write() -> None:
            async with self._database.change() as session:
                session.add(_entry(request, action, subject, link))

        await self._reserve.spend(write)

    def seen(self, request: Request, action: str, subject: str | None = None, *, link: str | None = None) -> None:
        """Remember what the caller of a request saw; `write` writes it down."""
        entry = _entry(request, action, subject, link)
        same = (entry.action, entry.subject, entry.actor, entry.address, entry.login, entry.link, entry.token)
        now = time.monotonic()
        if now - self._last.get(same, -SAME_SECONDS) < SAME_SECONDS or len(self._seen) >= MOST_WAITING:
            return
        self._last[same] = now
        self._seen.append(entry)

    async def write(self) -> None:
        """Write down what was seen since the last time."""
        now = time.monotonic()
        self._last = {same: at for same, at in self._last.items() if now - at < SAME_SECONDS}
        # Who waits for this finds written down what another began to write.
        async with self._writing:
            entries, self._seen = self._seen, []
            if not entries:
                return
            try:
                async with self._database.change() as session:
                    session.add_all(entries)
            except SQLAlchemyError:
                # A full disk, or a database that is away: not lost, as long as it is not too much.
                self._seen = [*(_copied(each) for each in entries), *self._seen][:MOST_WAITING]
                raise

    async def keep_writing(self) -> None:
        """Write until the service ends."""
        while True:
            try:
                await self.write()
            except SQLAlchemyError as error:
                log.warning("what was seen could not be written down yet", reason=type(error).__name__)
            await asyncio.sleep(WRITE_SECONDS)

    async def list(self, *, offset: int, limit: int) -> Sequence[Audit]:
        """Rows, the newest first."""
        async with self._database.begin() as session:
            return (await session.scalars(select(Audit).order_by(Audit.id.desc()).offset(offset).limit(limit))).all()

    async def sweep(self) -> None:
        """Delete rows older than `KEPT_DAYS`, and the oldest of those beyond `MOST_ROWS`."""
        async with self._database.change() as session:
            await session.execute(delete(Audit).where(Audit.at_ns < now_ns() - KEPT_DAYS * DAY_NS))
            newest = await session.scalar(select(func.max(Audit.id)))
            await session.execute(delete(Audit).where(Audit.id <= (newest or 0) - MOST_ROWS))


class Seen:
    """ASGI middleware: what was read, by what answered it. Share links are written down where they are opened."""

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
        asked = [of_path] if of_path else [request.query_params.get(name) for name in COMPARED]
        for subject in [each for each in asked if each] or ([None] if endpoint in READ else []):
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
    """The same as a new row: one that could not be written belongs to the session that failed."""
    columns = (column.key for column in Audit.__table__.columns if column.key != "id")
    return Audit(**{name: getattr(entry, name) for name in columns})
