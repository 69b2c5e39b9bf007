"""Everything that the service is made of, put together, started and ended in order."""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog
from sqlalchemy.exc import SQLAlchemyError

from tcpwin_web.audit import AuditLog
from tcpwin_web.captures import Captures
from tcpwin_web.jobs import Executor, ProcessExecutor
from tcpwin_web.jobs.queue import Queue
from tcpwin_web.security.access import Gate
from tcpwin_web.security.limiting import Rates
from tcpwin_web.settings import Settings
from tcpwin_web.sharing.links import Links
from tcpwin_web.storage import Database, DataFolder
from tcpwin_web.storage.files import InUseError

SWEEP_SECONDS = 600

log = structlog.get_logger("tcpwin.service")


@dataclass(frozen=True)
class Skipped:
    """A file that the service was started with and does not show, and why."""

    name: str
    reason: str


class Service:
    """One running service."""

    def __init__(self, settings: Settings, shown: Sequence[Path] = (), executor: Executor | None = None) -> None:
        self.settings = settings
        self.shown = tuple(shown)
        self.data = DataFolder(settings.data)
        self.database = Database(settings.url)
        self.executor = executor or ProcessExecutor(
            settings.workers, memory_bytes=settings.job_memory_bytes, seconds=settings.job_seconds
        )
        # Who looks at a page does not wait until the analysis of another capture is over.
        self.answers = executor or ProcessExecutor(
            settings.workers, memory_bytes=settings.job_memory_bytes, seconds=settings.job_seconds
        )
        self.queue = Queue(self.database, self.data, self.executor, self.answers, workers=settings.workers)
        self.captures = Captures(settings, self.database, self.data, self.queue)
        self.links = Links(self.database)
        self.audit = AuditLog(self.database)
        self.gate = Gate(settings)
        self.rates = Rates(upload=settings.upload_rate, login=settings.login_rate, token=settings.login_rate)
        self.skipped: list[Skipped] = []
        """What it was started with and does not show."""
        self.is_ready = False
        self.failure: str | None = None
        """Why it could not start, in words."""
        self.is_ending = False
        """Whether it was told to end: streams that go on stop, so that nobody waits for them."""
        self.watched = 0
        """Streams of progress that are open."""
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Open the data folder and the database, and begin to work."""
        try:
            self.data.prepare()
            await self.database.upgrade()
            await self.captures.recover()
            await self.queue.start()
        except InUseError as error:
            self.failure = str(error)
            raise
        except OSError as error:
            self.failure = f"the data folder {self.data.path} cannot be used: {error.strerror}"
            raise
        except SQLAlchemyError as error:
            # Its text may hold the URL's password; what the driver says does not.
            self.failure = f"the database cannot be used: {getattr(error, 'orig', None) or type(error).__name__}"
            raise
        self._tasks = [asyncio.create_task(self._take_in()), asyncio.create_task(self._sweep())]
        self.is_ready = True

    async def stop(self) -> None:
        """End in order: running analyses begin again with the next service."""
        self.is_ready = False
        async with self.database.at_rest():
            for task in self._tasks:
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.queue.stop()
        for each in (self.executor, self.answers):
            await asyncio.to_thread(each.shutdown, cancel_futures=True)
        await self.database.close()
        self.data.release()

    async def _take_in(self) -> None:
        for path in self.shown:
            try:
                reason = await self.captures.take_in(path)
            except Exception as error:
                log.exception("a capture could not be taken in", file=path.name)
                reason = f"the service could not take it ({type(error).__name__})"
            if reason is not None:
                reason = reason.removeprefix(f"{path.name}: ")
                log.warning("skipped", file=path.name, reason=reason)
                self.skipped.append(Skipped(path.name, reason))

    async def _sweep(self) -> None:
        while True:
            with contextlib.suppress(Exception):
                await self.captures.sweep()
                await self.links.sweep()
                await self.audit.sweep()
            await asyncio.sleep(SWEEP_SECONDS)
