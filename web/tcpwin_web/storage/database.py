"""A database URL in, sessions out: SQLite or PostgreSQL, its tables brought up to date when it is opened."""

import asyncio
import errno
import fcntl
import os
import sqlite3
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, nullcontext, suppress
from importlib.resources import files
from typing import Any, TypeVar

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_sessionmaker, create_async_engine

T = TypeVar("T")

BUSY_MS = 10_000
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
DISK_FULL, READ_ONLY = "53100", "25006"
"""Of PostgreSQL (appendix A of its documentation)."""
CONNECT_SECONDS = 10
CLAIM = int.from_bytes(b"tcpwin")
"""The number of the advisory lock that says that a service works on a database of PostgreSQL."""


class InUseError(Exception):
    """Another service works on the same data: two would do each other's work, and clear away each other's files."""


class Database:
    """Sessions of one database."""

    def __init__(self, url: str) -> None:
        self._is_sqlite = url.startswith("sqlite")
        options: dict[str, Any] = (
            {}
            if self._is_sqlite
            else {
                "pool_size": 10,
                "max_overflow": 20,
                "pool_pre_ping": True,
                "connect_args": {"connect_timeout": CONNECT_SECONDS},
            }
        )
        self._file = make_url(url).database if self._is_sqlite else None
        self._opened: int | None = None
        self._claim: AsyncConnection | None = None
        self._claiming = asyncio.Lock()
        self._writing = asyncio.Lock()
        self._engine = create_async_engine(url, **options)
        if self._is_sqlite:
            event.listen(self._engine.sync_engine, "connect", _prepare_sqlite)
        self._sessions = async_sessionmaker(self._engine, expire_on_commit=False)
        self._open_sessions = 0
        self._may_open = asyncio.Event()
        self._may_open.set()
        self._all_closed = asyncio.Event()

    async def claim(self) -> None:
        """Make sure that no other service works on this database, now or until it is closed; may be asked again.

        PostgreSQL forgets a claim when it restarts: whoever asks first has it then.

        Raises:
            InUseError: another one does.
            SQLAlchemyError, OSError: the database cannot be asked.
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
            if not await connection.scalar(text("SELECT pg_try_advisory_lock(:number)"), {"number": CLAIM}):
                raise InUseError("another service works on this database")
        except BaseException:
            await connection.close()
            raise
        self._claim = connection

    def _claim_file(self, file: str) -> None:
        """Lock SQLite's file, which only its owner may read, also where it was there before."""
        if self._opened is not None:
            return
        # flock(2) does not meet SQLite's own locks, which are those of fcntl(2).
        opened = os.open(file, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for each in (file, f"{file}-wal", f"{file}-shm"):
                with suppress(FileNotFoundError):
                    os.chmod(each, 0o600)  # noqa: PTH101 - a name beside the file's
        except BlockingIOError:
            os.close(opened)
            raise InUseError("another service works on this database") from None
        except BaseException:
            os.close(opened)
            raise
        self._opened = opened

    async def upgrade(self) -> None:
        """Bring the tables to the newest version; those of a new database are made."""
        async with self._engine.begin() as connection:
            await connection.run_sync(_upgrade)

    @asynccontextmanager
    async def change(self) -> AsyncIterator[AsyncSession]:
        """As `begin`, for a block that writes; none may be within another.

        SQLite lets one write at a time, and others try now and then for as long as `BUSY_MS`, whoever came first: of
        fifty some never get it. Here they wait for their turn.
        """
        async with self._writing if self._is_sqlite else nullcontext(), self.begin() as session:
            yield session

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[AsyncSession]:
        """A session that is committed at the end of the block, or rolled back where it fails."""
        await self._may_open.wait()
        self._open_sessions += 1
        try:
            async with self._sessions() as session, session.begin():
                yield session
        finally:
            self._open_sessions -= 1
            self._all_closed.set()

    @asynccontextmanager
    async def at_rest(self) -> AsyncIterator[None]:
        """No session is open in the block, and none begins: a task cancelled here leaves no connection half used.

        The driver's thread works on for a task that was cancelled; SQLAlchemy logs an error for each such connection.
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
        """Empty SQLite's log of writes, in which the bytes of rows that are deleted by now may still stand."""
        if self._is_sqlite:
            # A full disk keeps it from being done; it is done again after the next deletion.
            with suppress(SQLAlchemyError):
                async with self._engine.connect() as connection:
                    await connection.execute(text("PRAGMA wal_checkpoint(TRUNCATE)"))

    async def close(self) -> None:
        """Close all connections, and let another service use the database; no session can be opened afterwards."""
        await self._close_sessions()
        if self._claim is not None:
            with suppress(SQLAlchemyError):
                # The server would learn late that the connection is closed, and refuse a service that comes at once.
                await self._claim.execute(text("SELECT pg_advisory_unlock(:number)"), {"number": CLAIM})
                await self._claim.close()
            self._claim = None
        await self._engine.dispose()
        if self._opened is not None:
            # A process that is being started may hold the descriptor too, until it runs another program.
            fcntl.flock(self._opened, fcntl.LOCK_UN)
            # Last: to close any descriptor of a file gives up all locks of this process on it (fcntl(2)).
            os.close(self._opened)
            self._opened = None


async def unbroken(work: Coroutine[Any, Any, T]) -> T:
    """Wait for work on the database that goes on where its caller is cancelled.

    A connection that is left in the middle of a query is lost, and SQLAlchemy logs an error for it.
    """
    task = asyncio.ensure_future(work)
    # Where nobody waits any more, nobody asks how it ended.
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    return await asyncio.shield(task)


def _prepare_sqlite(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    # Deleted means gone: SQLite otherwise leaves the bytes of deleted rows in its file.
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
    """Whether a database error says that its files cannot be written to."""
    origin = getattr(error, "orig", None)
    if isinstance(origin, sqlite3.Error):
        return (origin.sqlite_errorcode or 0) & 0xFF == sqlite3.SQLITE_READONLY
    return getattr(origin, "sqlstate", None) == READ_ONLY


def is_full(error: BaseException) -> bool:
    """Whether an error, of the database or of the system, says that the disk is full."""
    if isinstance(error, OSError):
        return error.errno in FULL
    origin = getattr(error, "orig", None)
    if isinstance(origin, sqlite3.Error):
        return origin.sqlite_errorcode == sqlite3.SQLITE_FULL
    return getattr(origin, "sqlstate", None) == DISK_FULL
