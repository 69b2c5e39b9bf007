"""Sessions of an SQLite or PostgreSQL database, whose tables are upgraded when it is opened."""

import asyncio
import errno
import fcntl
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from importlib.resources import files
from typing import Any, TypeVar

import structlog
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_sessionmaker, create_async_engine

from tcpwin_web.slots import BusyError, FairSemaphore

T = TypeVar("T")

log = structlog.get_logger("tcpwin.storage")

BUSY_MS = 10_000
TRUNCATE_MS = 1_000
"""Time for which truncating SQLite's log waits for its readers, before others may write."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
DISK_FULL, READ_ONLY = "53100", "25006"
"""SQLSTATE codes of PostgreSQL (appendix A of its documentation)."""
CONNECT_SECONDS, WAIT_SECONDS = 10, 30.0
OUTSIDE_SESSIONS = 2
"""Connections used without a session: for the claim, and to truncate SQLite's log."""
CLAIM = int.from_bytes(b"tcpwin")
"""Number of the advisory lock by which a service claims a PostgreSQL database."""


class EncodingError(Exception):
    """The database cannot hold every text."""


class InUseError(Exception):
    """Another service uses the same data: two would run each other's jobs and delete each other's files."""


class Database:
    """Sessions of one database."""

    def __init__(self, url: str, *, sessions: int = 30) -> None:
        """Create the engine.

        Args:
            sessions: maximum number of connections to the database. One caller gets three quarters of them, all guests
                half, and an eighth is reserved for the owner; waiting callers take turns.
        """
        self._is_sqlite = url.startswith("sqlite")
        most = max(sessions - OUTSIDE_SESSIONS, 2)
        self._slots = FairSemaphore(
            most, each=most * 3 // 4, guests=most // 2, reserved=-(-most // 8), outlasts_callers=True
        )
        options: dict[str, Any] = (
            {"pool_size": sessions - sessions * 2 // 3, "max_overflow": sessions * 2 // 3}
            if self._is_sqlite
            else {
                "pool_size": sessions - sessions * 2 // 3,
                "max_overflow": sessions * 2 // 3,
                "pool_pre_ping": True,
                # Without an encoding, SQL_ASCII, the driver returns bytes for text.
                "connect_args": {"connect_timeout": CONNECT_SECONDS, "client_encoding": "utf8"},
            }
        )
        self._file = make_url(url).database if self._is_sqlite else None
        self._opened: int | None = None
        self._claim: AsyncConnection | None = None
        self._claiming = asyncio.Lock()
        self._writing = FairSemaphore(1, each=1, guests=1, outlasts_callers=True)
        self._forgetting = asyncio.Lock()
        self._deletions, self._forgotten = 0, 0
        """Number of deletions, and of those before the latest truncation of the log."""
        self._engine = create_async_engine(url, **options)
        if self._is_sqlite:
            event.listen(self._engine.sync_engine, "connect", _prepare_sqlite)
        self._sessions = async_sessionmaker(self._engine, expire_on_commit=False)
        self._open_sessions = 0
        self._may_open = asyncio.Event()
        self._may_open.set()
        self._all_closed = asyncio.Event()
        self._is_away = False

    def note_failure(self, error: Exception) -> None:
        """Log that the database does not respond: one line until it responds again."""
        if not self._is_away:
            log.warning("the database does not respond", reason=type(getattr(error, "orig", None) or error).__name__)
        self._is_away = True

    async def claim(self) -> None:
        """Claim the database for this service until it is closed; may be called again.

        PostgreSQL forgets a claim when it restarts: the first to ask then gets it.

        Raises:
            InUseError: another service has claimed it.
            EncodingError: its encoding is not UTF-8.
            SQLAlchemyError, OSError: the database does not answer.
        """
        if self._file is not None:
            self._claim_file(self._file)
            return
        async with self._claiming:
            await self._claim_server()

    async def _claim_server(self) -> None:
        if self._claim is not None:
            try:
                await self._claim.execute(text("SELECT 1"))
            except SQLAlchemyError:
                lost, self._claim = self._claim, None
                await lost.invalidate()
                await lost.close()
            else:
                return
        connection = await self._engine.connect()
        try:
            await connection.execution_options(isolation_level="AUTOCOMMIT")
            encoding = await connection.scalar(text("SHOW server_encoding"))
            if encoding != "UTF8":
                raise EncodingError(
                    f"the database has the encoding {encoding}, which cannot hold every name: create it with "
                    "CREATE DATABASE tcpwin ENCODING 'UTF8' TEMPLATE template0"
                )
            if not await connection.scalar(text("SELECT pg_try_advisory_lock(:number)"), {"number": CLAIM}):
                raise InUseError("another service works on this database")
        except BaseException:
            await connection.close()
            raise
        self._claim = connection

    def _claim_file(self, file: str) -> None:
        """Lock SQLite's file, and make it readable for its owner only."""
        if self._opened is not None:
            return
        # flock(2) is independent of SQLite's own locks, which use fcntl(2).
        opened = os.open(file, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for each in (file, f"{file}-wal", f"{file}-shm"):
                with suppress(FileNotFoundError):
                    os.chmod(each, 0o600)  # noqa: PTH101 - derived from the file's name
        except BlockingIOError:
            os.close(opened)
            raise InUseError("another service works on this database") from None
        except BaseException:
            os.close(opened)
            raise
        self._opened = opened

    async def upgrade(self) -> None:
        """Upgrade the tables to the newest version; create those of a new database."""
        async with self._engine.begin() as connection:
            await connection.run_sync(_upgrade)

    async def revision(self) -> str | None:
        """Return the version of the tables."""
        async with self._engine.connect() as connection:
            found = await connection.scalar(text("SELECT version_num FROM alembic_version"))
            return None if found is None else str(found)

    async def read_consistently(self, session: AsyncSession) -> None:
        """Let all queries of a session see the same state."""
        # Before SQLite's first change, the driver begins no transaction by itself: each query would see its own state.
        begin = "BEGIN" if self._is_sqlite else "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
        await session.execute(text(begin))

    @asynccontextmanager
    async def change(self) -> AsyncIterator[AsyncSession]:
        """Open a session that writes; do not nest it in another.

        SQLite allows one writer at a time, and others poll in no order for `BUSY_MS`: some of fifty never succeed.
        Here they queue, and each caller gets a turn.
        """
        async with self._writing.take() if self._is_sqlite else nullcontext(), self.begin() as session:
            yield session

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[AsyncSession]:
        """Open a session that is committed at the end of the block, or rolled back if the block fails."""
        await self._may_open.wait()
        self._open_sessions += 1
        try:
            async with AsyncExitStack() as held:
                try:
                    await held.enter_async_context(self._slots.take(WAIT_SECONDS))
                except BusyError:
                    raise PoolTimeoutError("all connections to the database are in use") from None
                session = await held.enter_async_context(self._sessions())
                await held.enter_async_context(session.begin())
                yield session
            if self._is_away:
                self._is_away = False
                log.info("the database responds again")
        finally:
            self._open_sessions -= 1
            self._all_closed.set()

    @asynccontextmanager
    async def at_rest(self) -> AsyncIterator[None]:
        """Let no session be open during the block: a task cancelled there leaves no half-used connection.

        The driver's thread continues after a cancellation, and SQLAlchemy logs an error for each such connection.
        """
        try:
            await self._close_sessions()
            yield
        finally:
            self._may_open.set()

    async def _close_sessions(self) -> None:
        """Wait until every session is closed; new ones wait from now on."""
        self._may_open.clear()
        while self._open_sessions:
            self._all_closed.clear()
            await self._all_closed.wait()

    async def check(self) -> None:
        """Raise an error if the database does not answer."""
        async with self.begin() as session:
            await session.execute(text("SELECT 1"))

    async def forget(self) -> None:
        """Truncate SQLite's write-ahead log, which may still hold the bytes of deleted rows.

        That waits for all readers, such as a backup, and lets nobody write meanwhile: wait briefly, but repeatedly.
        """
        if not self._is_sqlite:
            return
        self._deletions += 1
        deletion = self._deletions
        async with self._forgetting:
            if self._forgotten >= deletion:
                return
            self._forgotten = self._deletions
            # Fails on a full disk; the next deletion does it again.
            with suppress(SQLAlchemyError):
                until = time.monotonic() + BUSY_MS / 1000
                while await self._log_is_busy() and time.monotonic() < until:
                    pass

    async def _log_is_busy(self) -> bool:
        """Truncate the log unless a reader keeps it."""
        async with self._writing.take(), self._engine.connect() as connection:
            await connection.execute(text(f"PRAGMA busy_timeout = {TRUNCATE_MS}"))
            is_busy = await connection.scalar(text("PRAGMA wal_checkpoint(TRUNCATE)"))
            await connection.execute(text(f"PRAGMA busy_timeout = {BUSY_MS}"))
        return bool(is_busy)

    async def close(self) -> None:
        """Close all connections, and let another service use the database; no session can be opened afterwards."""
        await self._close_sessions()
        if self._claim is not None:
            with suppress(SQLAlchemyError):
                # The server notices a closed connection late, and would refuse a service that starts at once.
                await self._claim.execute(text("SELECT pg_advisory_unlock(:number)"), {"number": CLAIM})
                await self._claim.close()
            self._claim = None
        await self._engine.dispose()
        if self._opened is not None:
            # A process being started may still hold the descriptor, until it runs another program.
            fcntl.flock(self._opened, fcntl.LOCK_UN)
            # Last: closing any descriptor of a file releases all locks of this process on it (fcntl(2)).
            os.close(self._opened)
            self._opened = None


async def unbroken(work: Coroutine[Any, Any, T]) -> T:
    """Await database work that continues if its caller is cancelled.

    A connection abandoned in the middle of a query is lost, and SQLAlchemy logs an error for it.
    """
    task = asyncio.ensure_future(work)
    # Nobody retrieves the exception once the caller has gone.
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    return await asyncio.shield(task)


def _prepare_sqlite(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    # Overwrite deleted rows: SQLite otherwise leaves their bytes in its file.
    for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON", "secure_delete = ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
    cursor.close()


def _upgrade(connection: Connection) -> None:
    config = Config()
    config.set_main_option("script_location", str(files("tcpwin_web.storage") / "migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def is_read_only(error: BaseException) -> bool:
    """Whether a database error means that its files cannot be written."""
    origin = getattr(error, "orig", None)
    if isinstance(origin, sqlite3.Error):
        return (origin.sqlite_errorcode or 0) & 0xFF == sqlite3.SQLITE_READONLY
    return getattr(origin, "sqlstate", None) == READ_ONLY


def is_full(error: BaseException) -> bool:
    """Whether a database or system error means that the disk is full."""
    if isinstance(error, OSError):
        return error.errno in FULL
    origin = getattr(error, "orig", None)
    if isinstance(origin, sqlite3.Error):
        return origin.sqlite_errorcode == sqlite3.SQLITE_FULL
    return getattr(origin, "sqlstate", None) == DISK_FULL
