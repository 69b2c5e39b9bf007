"""A database URL in, sessions out: SQLite or PostgreSQL, its tables brought up to date when it is opened."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, event, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine

BUSY_MS = 10_000
DISK_FULL = "53100"
"""Of PostgreSQL (appendix A of its documentation)."""


class Database:
    """Sessions of one database."""

    def __init__(self, url: str) -> None:
        self._is_sqlite = url.startswith("sqlite")
        options: dict[str, Any] = (
            {} if self._is_sqlite else {"pool_size": 10, "max_overflow": 20, "pool_pre_ping": True}
        )
        self._engine = create_async_engine(url, **options)
        if self._is_sqlite:
            event.listen(self._engine.sync_engine, "connect", _prepare_sqlite)
        self._sessions = async_sessionmaker(self._engine, expire_on_commit=False)
        self._open_sessions = 0
        self._may_open = asyncio.Event()
        self._may_open.set()
        self._all_closed = asyncio.Event()

    async def upgrade(self) -> None:
        """Bring the tables to the newest version; those of a new database are made."""
        async with self._engine.begin() as connection:
            await connection.run_sync(_upgrade)

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
        self._may_open.clear()
        try:
            while self._open_sessions:
                self._all_closed.clear()
                await self._all_closed.wait()
            yield
        finally:
            self._may_open.set()

    async def check(self) -> None:
        """Ask the database something; raises where it does not answer."""
        async with self._engine.connect() as connection:
            await connection.execute(text("SELECT 1"))

    async def forget(self) -> None:
        """Empty SQLite's log of writes, in which the bytes of rows that are deleted by now may still stand."""
        if self._is_sqlite:
            # A full disk keeps it from being done; it is done again after the next deletion.
            with suppress(SQLAlchemyError):
                async with self._engine.connect() as connection:
                    await connection.execute(text("PRAGMA wal_checkpoint(TRUNCATE)"))

    async def close(self) -> None:
        """Close all connections."""
        await self._engine.dispose()


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


def is_full(error: BaseException) -> bool:
    """Whether a database error says that the disk is full."""
    origin = getattr(error, "orig", None)
    if isinstance(origin, sqlite3.Error):
        return origin.sqlite_errorcode == sqlite3.SQLITE_FULL
    return getattr(origin, "sqlstate", None) == DISK_FULL
