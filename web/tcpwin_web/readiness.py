"""Whether the service can do its work now: what it needs is tried, not assumed; however often it is asked."""

import asyncio
import time
from collections.abc import Mapping
from typing import Protocol

from sqlalchemy.exc import SQLAlchemyError

from tcpwin_web.jobs import JobError, ProcessExecutor
from tcpwin_web.jobs.queue import Queue
from tcpwin_web.places import Places
from tcpwin_web.storage import Database, DataFolder
from tcpwin_web.storage.database import InUseError, unbroken

LEAST_FREE_BYTES = 64 << 20
DATABASE_SECONDS = 3.0
WORKER_SECONDS = 3.0
FRESH_SECONDS = 1.0
"""For so long an answer holds: whoever may ask needs no token."""


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
    def places(self) -> Mapping[str, Places]: ...


class Readiness:
    """Tries what the service needs."""

    def __init__(self, service: Parts) -> None:
        self._service = service
        self._asking: asyncio.Task[str | None] | None = None
        self._asked = 0.0
        self._claiming: asyncio.Task[None] | None = None

    async def reason(self) -> str | None:
        """Why the service cannot work, as a sentence; None where it can."""
        if self._asking is None or (self._asking.done() and time.monotonic() - self._asked > FRESH_SECONDS):
            self._asked = time.monotonic()
            self._asking = asyncio.create_task(self._try())
        return await asyncio.shield(self._asking)

    async def _try(self) -> str | None:
        service = self._service
        if service.is_ending or not service.is_ready:
            return service.failure or "The service is starting or stopping; try again."
        if not service.queue.is_working:
            return "Analyses are not taken."
        database, worker = await asyncio.gather(self._ask_database(), self._try_worker())
        data = service.data
        full = next((kind for kind, places in service.places.items() if places.is_full), None)
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
        """Before it has the database for itself, as after a restart of PostgreSQL, a service is not ready."""
        if self._claiming is None or self._claiming.done():
            self._claiming = asyncio.create_task(self._service.database.claim())
            # Where nobody waits for it any more, the next one who asks is told why it failed.
            self._claiming.add_done_callback(lambda task: task.cancelled() or task.exception())
        # Left in its midst the connection that holds the claim would be lost, and the claim with it.
        await asyncio.shield(self._claiming)

    async def _try_worker(self) -> str | None:
        """Let a process be started, as for an analysis, beside those that work."""
        try:
            await asyncio.wait_for(asyncio.wrap_future(self._service.prober.submit(int)), WORKER_SECONDS)
        except (JobError, TimeoutError):
            return "No process can be started for an analysis."
        return None
