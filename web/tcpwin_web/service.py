"""Everything that the service is made of, put together, started and ended in order."""

import asyncio
import contextlib
import errno
import os
import threading
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy.exc import SQLAlchemyError

from tcpwin_web.audit import AuditLog
from tcpwin_web.captures import Captures
from tcpwin_web.history import History
from tcpwin_web.jobs import Executor, ProcessExecutor
from tcpwin_web.jobs.queue import Queue
from tcpwin_web.limiting import Rates
from tcpwin_web.notes import Notes
from tcpwin_web.places import Places
from tcpwin_web.readiness import WORKER_SECONDS, Readiness
from tcpwin_web.resumables import Resumables
from tcpwin_web.security.access import Gate
from tcpwin_web.security.tokens import Tokens
from tcpwin_web.settings import Settings
from tcpwin_web.sharing.keys import AddressKeys
from tcpwin_web.sharing.links import Links
from tcpwin_web.storage import Database, DataFolder
from tcpwin_web.storage.clock import Clock
from tcpwin_web.storage.database import InUseError
from tcpwin_web.twins import Twins
from tcpwin_web.uploads.receive import text_name

SWEEP_SECONDS = 600
CLAIM_SECONDS = 5
UPLOAD_WAIT_SECONDS = 60.0
"""For a place: with none an upload is refused, and may come again."""
PAGE_THREADS = 32
LOOKS = 4
"""Of streams of progress at the database at the same time: however many they are, pages find it free."""
PRINTS = 2
SHARED_PAGES = 2
ANALYSIS_NICENESS, ANSWER_NICENESS = 10, 5
"""Nobody looks at an analysis while it runs; somebody waits for an answer or a print; pages go before both."""

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
        limits: dict[str, Any] = {"memory_bytes": settings.job_memory_bytes, "seconds": settings.job_seconds}
        workers = settings.workers
        self.executor = executor or _analyses_of(settings, **limits, niceness=ANALYSIS_NICENESS)
        # Who looks at a page does not wait until the analysis of another capture is over.
        self.answers = executor or ProcessExecutor(workers + 1, **limits, niceness=ANSWER_NICENESS)
        self.prober = ProcessExecutor(1, memory_bytes=settings.job_memory_bytes, seconds=WORKER_SECONDS)
        self.upload_threads = ThreadPoolExecutor(settings.uploads, thread_name_prefix="upload")
        self.printing: set[threading.Event] = set()
        """Of each browser that prints: to be set where it shall end."""
        self.print_threads = ThreadPoolExecutor(PRINTS, thread_name_prefix="print")
        self._page_threads = ThreadPoolExecutor(PAGE_THREADS, thread_name_prefix="page")
        self._uploads = Places(
            settings.uploads, each=max(settings.uploads * 3 // 4, 1), guests=0, each_waiting=256, guests_waiting=0
        )
        answers = Places(
            workers + 1, each=workers, guests=max((workers + 1) // 2, 1), each_waiting=256, guests_waiting=32
        )
        # A browser takes hundreds of megabytes.
        self.prints = Places(PRINTS, each=1, guests=1, each_waiting=64, guests_waiting=16)
        self.shared_pages = Places(
            SHARED_PAGES, each=SHARED_PAGES, guests=SHARED_PAGES, each_waiting=256, guests_waiting=256
        )
        self.places = {
            "uploads": self._uploads,
            "answers": answers,
            "prints": self.prints,
            "shared pages": self.shared_pages,
        }
        self.queue = Queue(self.database, self.data, self.executor, self.answers, workers=workers, places=answers)
        self.captures = Captures(settings, self.database, self.data, self.queue, self.upload_threads)
        self.twins = Twins(settings, self.data, self.queue)
        self.resumables = Resumables(settings, self.captures)
        self.keys = AddressKeys(self.data.keys)
        self.links = Links(self.database, self.keys)
        self.history = History(self.database)
        self.notes = Notes(self.database)
        self.audit = AuditLog(self.database, self.data.reserve)
        self.tokens = Tokens(self.database)
        self.gate = Gate(settings, self.tokens)
        self.rates = Rates(
            upload=settings.upload_rate,
            login=settings.login_rate,
            token=settings.login_rate,
            guest=settings.guest_rate,
            guest_report=settings.guest_report_rate,
        )
        self.readiness = Readiness(self)
        self.skipped: list[Skipped] = []
        """What it was started with and does not show."""
        self._clock = Clock(self.data.path / "clock")
        self.is_ready = False
        self.failure: str | None = None
        """Why it could not start, in words."""
        self.is_ending = False
        """Whether it was told to end: streams that go on stop, so that nobody waits for them."""
        self.watched = 0
        """Streams of progress that are open."""
        self.looks = asyncio.Semaphore(LOOKS)
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Open the data folder and the database, and begin to work."""
        # Pages read files in threads that are only theirs.
        asyncio.get_running_loop().set_default_executor(self._page_threads)
        try:
            await self._open()
        except InUseError as error:
            self.failure = str(error)
            raise
        except OSError as error:
            self.failure = f"the data folder {self.data.path} cannot be used: {error.strerror or error}"
            raise
        except SQLAlchemyError as error:
            # Its text may hold the URL's password; what the driver says does not.
            self.failure = f"the database cannot be used: {getattr(error, 'orig', None) or type(error).__name__}"
            raise
        work = (self._take_in(), self._sweep(), self._keep_claim(), self.audit.keep_writing())
        self._tasks = [asyncio.create_task(each) for each in work]
        self.is_ready = True

    async def _open(self) -> None:
        try:
            self.data.prepare()
            self.keys.prepare()
            await self.database.claim()
            await self.data.reserve.spend(self.database.upgrade)
            await self.tokens.load()
            await self.data.reserve.spend(self.captures.recover)
            await self.data.reserve.spend(self.queue.start)
        except BaseException:
            # What was taken is left to the next service.
            await self.database.close()
            self.data.release()
            raise

    def begin_to_end(self) -> None:
        """Hand out no more places, and stop streams: what is being answered goes on."""
        self.is_ending = True
        for each in self.places.values():
            each.close()
        self.resumables.close()

    def give_up_prints(self) -> None:
        """Have all browsers ended, by the threads that wait for them: they know nothing of this process's end."""
        for unwanted in tuple(self.printing):
            unwanted.set()

    @asynccontextmanager
    async def uploads(self) -> AsyncIterator[None]:
        """A place for an upload. What is kept for deleting on a full disk is not given to it."""
        async with self._uploads.take(UPLOAD_WAIT_SECONDS):
            if await asyncio.to_thread(lambda: self.data.reserve.is_short):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            yield

    async def stop(self) -> None:
        """End in order: running analyses begin again with the next service."""
        self.is_ready = False
        self.begin_to_end()
        async with self.database.at_rest():
            for task in self._tasks:
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.resumables.stop()
        await self.twins.stop()
        await self.queue.stop()
        for each in (self.executor, self.answers, self.prober):
            await asyncio.to_thread(each.shutdown, cancel_futures=True)
        with contextlib.suppress(SQLAlchemyError):
            await self.audit.write()
        await self.database.close()
        self.upload_threads.shutdown(wait=False, cancel_futures=True)
        self.give_up_prints()
        # The process ends by the signal that it was sent, and waits for no thread then.
        await asyncio.to_thread(self.print_threads.shutdown, cancel_futures=True)
        self.data.release()

    async def _take_in(self) -> None:
        for path in self.shown:
            name = text_name(path.name)
            try:
                reason = await self.captures.take_in(path)
            except Exception as error:
                log.exception("a capture could not be taken in", file=name)
                reason = f"the service could not take it ({type(error).__name__})"
            if reason is not None:
                reason = reason.removeprefix(f"{name}: ")
                log.warning("skipped", file=name, reason=reason)
                self.skipped.append(Skipped(name, reason))

    async def _sweep(self) -> None:
        while True:
            try:
                await self.resumables.sweep()
                if self._clock.is_steady():
                    await self.captures.sweep()
                    await self.data.reserve.spend(self.links.sweep)
                    await self.data.reserve.spend(self.tokens.sweep)
                    await self.data.reserve.spend(self.audit.sweep)
                self.data.reserve.keep()
            except Exception:
                log.exception("what is over could not be deleted yet")
            await asyncio.sleep(SWEEP_SECONDS)

    async def _keep_claim(self) -> None:
        """Work only while no other service works on the database: PostgreSQL forgets who did when it restarts."""
        while True:
            await asyncio.sleep(CLAIM_SECONDS)
            try:
                await self.database.claim()
            except InUseError as error:
                self.failure = f"{error}: this one has stopped"
                self.is_ready = False
                log.error("stopped", reason=self.failure)
                await self.queue.stop()
                return
            except (SQLAlchemyError, OSError) as error:
                log.warning("the database does not respond", reason=type(error).__name__)


def _analyses_of(settings: Settings, **limits: Any) -> Executor:
    """What runs analyses: processes of this machine, or a cluster."""
    if settings.executor is None:
        return ProcessExecutor(settings.workers, **limits)
    from tcpwin_web.jobs.cluster import ClusterExecutor

    return ClusterExecutor(settings.executor, settings.workers, **limits)
