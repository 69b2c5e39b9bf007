"""Readiness: check the parts that the service needs, at most once per `FRESH_SECONDS`."""

import asyncio
import time
from collections.abc import Mapping
from typing import Protocol

from sqlalchemy.exc import SQLAlchemyError

from tcpwin_web.jobs import JobError, ProcessExecutor
from tcpwin_web.jobs.queue import Queue
from tcpwin_web.slots import FairSemaphore
from tcpwin_web.storage import Database, DataFolder
from tcpwin_web.storage.database import InUseError, unbroken

LEAST_FREE_BYTES = 64 << 20
DATABASE_SECONDS = 3.0
WORKER_SECONDS = 3.0
FRESH_SECONDS = 1.0
"""Lifetime of an answer: anyone may ask without a token."""


class Parts(Protocol):
    """The parts of a service that it cannot work without, and whether it has started."""

    is_ready: bool
    is_ending: bool
    failure: str | None
    database: Database
    data: DataFolder
    queue: Queue
    prober: ProcessExecutor

    @property
    def slots(self) -> Mapping[str, FairSemaphore]: ...


class Readiness:
    """Checks what the service needs."""

    def __init__(self, service: Parts) -> None:
        self._service = service
        self._asking: asyncio.Task[str | None] | None = None
        self._asked = 0.0
        self._claiming: asyncio.Task[None] | None = None

    async def reason(self) -> str | None:
        """Return why the service cannot work, as a sentence; None if it can."""
        if self._asking is None or (self._asking.done() and time.monotonic() - self._asked > FRESH_SECONDS):
            self._asked = time.monotonic()
            self._asking = asyncio.create_task(self._try())
        return await asyncio.shield(self._asking)

    async def _try(self) -> str | None:
        service = self._service
        if service.is_ending or not service.is_ready:
            return service.failure or "The service is starting or stopping; try again."
        if not service.queue.is_working:
            return "No analyses are being started."
        database, worker = await asyncio.gather(self._ask_database(), self._try_worker())
        data = service.data
        full = next((kind for kind, slots in service.slots.items() if slots.is_full), None)
        if not data.is_writable:
            return "The data folder cannot be written to."
        if data.free_bytes < LEAST_FREE_BYTES:
            return "The disk is nearly full."
        return database or worker or (f"Too many requests wait: {full}." if full else None)

    async def _ask_database(self) -> str | None:
        try:
            async with asyncio.timeout(DATABASE_SECONDS):
                await self._claim()
                # A connection abandoned while it is being opened would never be closed.
                await unbroken(self._service.database.check())
        except InUseError:
            return "Another service works on the database."
        except (SQLAlchemyError, OSError, TimeoutError):
            return "The database does not respond."
        return None

    async def _claim(self) -> None:
        """Claim the database: until it has it again, as after a restart of PostgreSQL, a service is not ready."""
        if self._claiming is None or self._claiming.done():
            self._claiming = asyncio.create_task(self._service.database.claim())
            # Once nobody waits for this attempt, the next caller learns why it failed.
            self._claiming.add_done_callback(lambda task: task.cancelled() or task.exception())
        # Interrupting it would lose the connection that holds the claim, and the claim with it.
        await asyncio.shield(self._claiming)

    async def _try_worker(self) -> str | None:
        """Start a process as for an analysis, in addition to the working ones."""
        try:
            await asyncio.wait_for(asyncio.wrap_future(self._service.prober.submit(int)), WORKER_SECONDS)
        except (JobError, TimeoutError):
            return "No process can be started for an analysis."
        return None
