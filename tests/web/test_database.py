"""Database sessions of the service, including those of cancelled tasks."""

import asyncio
import gc
import logging
import subprocess
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import aiosqlite
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine
from web.conftest import MakeClient
from web.postgres import ON_BOTH, Postgres

from tcpwin_web.captures import NotFoundError
from tcpwin_web.slots import Caller, set_caller
from tcpwin_web.storage import Database
from tcpwin_web.storage.files import DataFolder

Step = Callable[[aiosqlite.Connection], Awaitable[object]]


@pytest.mark.parametrize("name", ["commit", "rollback"])
def test_a_task_cancelled_at_rest_leaves_no_error(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A service that stops cancels its tasks anywhere, also while a connection returns to its pool."""
    step: Step = getattr(aiosqlite.Connection, name)
    began = asyncio.Event()

    async def late(connection: aiosqlite.Connection) -> object:
        began.set()
        await asyncio.sleep(0.05)
        return await step(connection)

    async def run() -> list[int]:
        database = Database(f"sqlite+aiosqlite:///{tmp_path / 'x.db'}")

        async def keep(number: int) -> None:
            async with database.begin() as session:
                await session.execute(text("INSERT INTO kept VALUES (:number)"), {"number": number})

        try:
            async with database.begin() as session:
                await session.execute(text("CREATE TABLE kept (number INTEGER)"))
            with monkeypatch.context() as patch:
                patch.setattr(aiosqlite.Connection, name, late)
                first = asyncio.create_task(keep(1))
                await began.wait()
                async with database.at_rest():
                    second = asyncio.create_task(keep(2))
                    await asyncio.sleep(0.2)
                    first.cancel()
                    second.cancel()
                await asyncio.gather(first, second, return_exceptions=True)
            async with database.begin() as session:
                return list(await session.scalars(text("SELECT number FROM kept")))
        finally:
            await database.close()

    with caplog.at_level(logging.WARNING):
        assert asyncio.run(run()) == [1], "what was begun is committed, and nothing is begun"
    assert [record.getMessage() for record in caplog.records] == []


@ON_BOTH
def test_who_writes_waits_for_his_turn_and_never_in_vain(
    database_url: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty writers queue for far longer than SQLite retries; readers are not delayed."""
    monkeypatch.setattr("tcpwin_web.storage.database.BUSY_MS", 50)

    async def run() -> list[int]:
        database = Database(database_url or f"sqlite+aiosqlite:///{tmp_path / 'x.db'}")
        written, read = asyncio.Event(), asyncio.Event()

        async def keep(number: int) -> None:
            async with database.change() as session:
                await session.execute(text("INSERT INTO kept VALUES (:number)"), {"number": number})
                written.set()
                await asyncio.gather(read.wait(), asyncio.sleep(0.02))

        try:
            async with database.change() as session:
                await session.execute(text("CREATE TABLE kept (number INTEGER)"))
            tasks = [asyncio.create_task(keep(number)) for number in range(20)]
            await written.wait()
            async with database.begin() as session:
                assert list(await session.scalars(text("SELECT number FROM kept"))) == []
            read.set()
            await asyncio.gather(*tasks)
            async with database.begin() as session:
                return sorted(await session.scalars(text("SELECT number FROM kept")))
        finally:
            await database.close()

    assert asyncio.run(run()) == list(range(20))


@ON_BOTH
def test_a_backup_sees_one_state(database_url: str | None, tmp_path: Path) -> None:
    """A file stored while the tables are read one after the other does not appear without its capture."""

    async def run() -> list[int | None]:
        database = Database(database_url or f"sqlite+aiosqlite:///{tmp_path / 'x.db'}")
        count = text("SELECT count(*) FROM kept")
        try:
            async with database.change() as session:
                await session.execute(text("CREATE TABLE kept (number INTEGER)"))
            async with database.begin() as reading:
                await database.read_consistently(reading)
                before = await reading.scalar(count)
                async with database.change() as session:
                    await session.execute(text("INSERT INTO kept VALUES (1)"))
                later = await reading.scalar(count)
            async with database.begin() as reading:
                return [before, later, await reading.scalar(count)]
        finally:
            await database.close()

    assert asyncio.run(run()) == [0, 0, 1]


def test_a_reader_of_a_deleted_row_keeps_nobody_from_writing(tmp_path: Path) -> None:
    """SQLite's log cannot be truncated before the last reader ends; it is truncated then."""
    path = tmp_path / "x.db"

    async def run() -> tuple[float, int]:
        database = Database(f"sqlite+aiosqlite:///{path}")
        try:
            async with database.change() as session:
                await session.execute(text("CREATE TABLE kept (number INTEGER)"))
            async with database.begin() as reading:
                await database.read_consistently(reading)
                await reading.execute(text("SELECT number FROM kept"))
                async with database.change() as session:
                    await session.execute(text("INSERT INTO kept VALUES (1)"))
                forgetting = asyncio.gather(*(database.forget() for _ in range(3)))
                await asyncio.sleep(0.05)
                began = time.monotonic()
                async with database.change() as session:
                    await session.execute(text("INSERT INTO kept VALUES (2)"))
                waited = time.monotonic() - began
                assert not forgetting.done()
            await forgetting
            return waited, path.with_name("x.db-wal").stat().st_size
        finally:
            await database.close()

    waited, log_bytes = asyncio.run(run())
    assert waited < 5, "well below the 10 s that a writer would have waited"
    assert log_bytes == 0


@ON_BOTH
def test_who_deletes_much_delays_himself(make_client: MakeClient, database_url: str | None) -> None:  # noqa: ARG001
    """Deletions and stored uploads take turns by caller, as all writing does."""
    client = make_client()
    captures = client.app.state.service.captures  # type: ignore[attr-defined]
    ended: list[str] = []

    async def delete(name: str) -> None:
        set_caller(Caller(name))
        with suppress(NotFoundError):
            await captures.delete("nowhere")
        ended.append(name)

    async def all_at_once() -> None:
        await asyncio.gather(*(delete(name) for name in ["greedy"] * 20 + ["modest"]))

    assert client.portal is not None
    client.portal.call(all_at_once)
    assert ended.index("modest") <= 1, ended


def test_inherited_descriptors_lock_no_service_out(tmp_path: Path) -> None:
    """A process being started holds its parent's descriptors until it executes another program."""
    url = f"sqlite+aiosqlite:///{tmp_path / 'x.db'}"
    folder, database = DataFolder(tmp_path / "data"), Database(url)
    folder.prepare()
    asyncio.run(database.claim())
    assert folder._lock is not None
    assert database._opened is not None
    with subprocess.Popen(["sleep", "600"], pass_fds=[folder._lock, database._opened]) as holder:
        try:
            folder.release()
            asyncio.run(database.close())
            next_folder, next_database = DataFolder(tmp_path / "data"), Database(url)
            next_folder.prepare()
            asyncio.run(next_database.claim())
            next_folder.release()
            asyncio.run(next_database.close())
        finally:
            holder.kill()


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_check_that_is_given_up_leaves_no_connection_open(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check is cancelled while its connection opens; pytest reports unclosed connections."""
    client = make_client()
    service, connect = client.app.state.service, aiosqlite.Connection._connect

    async def late(connection: aiosqlite.Connection) -> aiosqlite.Connection:
        found = await connect(connection)
        await asyncio.sleep(0.2)
        return found

    async def forget_connections() -> None:
        async with service.database.at_rest():
            await service.database._engine.dispose()

    client.portal.call(forget_connections)
    monkeypatch.setattr(aiosqlite.Connection, "_connect", late)
    monkeypatch.setattr("tcpwin_web.readiness.DATABASE_SECONDS", 0.05)
    assert client.get("/readyz").json()["detail"] == "The database does not respond."
    client.portal.call(service.database.close)
    gc.collect()


def test_a_claim_ends_before_its_connection(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL notices a closed connection with delay."""
    url, dispose = postgres.new_database(), AsyncEngine.dispose

    async def run() -> bool:
        first, second, claimed = Database(url), Database(url), False

        async def late(engine: AsyncEngine, close: bool = True) -> None:
            nonlocal claimed
            if engine is first._engine:
                await second.claim()
                claimed = True
            await dispose(engine, close)

        with monkeypatch.context() as patch:
            patch.setattr(AsyncEngine, "dispose", late)
            await first.claim()
            await first.close()
            await second.close()
        return claimed

    assert asyncio.run(run())
