"""The service: all its parts, started and stopped in order."""

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
from tcpwin_web.ledger import FOLLOWERS, STREAMS, Account, Disk, Ledger
from tcpwin_web.limiting import Rates
from tcpwin_web.notes import Notes
from tcpwin_web.readiness import WORKER_SECONDS, Readiness
from tcpwin_web.resumables import Resumables
from tcpwin_web.security.access import Gate
from tcpwin_web.security.tokens import Tokens
from tcpwin_web.settings import Settings
from tcpwin_web.sharing.keys import AddressKeys
from tcpwin_web.sharing.links import Links
from tcpwin_web.slots import FairSemaphore, current_caller, waiting
from tcpwin_web.storage import Database, DataFolder
from tcpwin_web.storage.clock import Clock
from tcpwin_web.storage.database import EncodingError, InUseError
from tcpwin_web.twins import Twins
from tcpwin_web.uploads.receive import text_name
from tcpwin_web.watching import Watch

SWEEP_SECONDS = 600
CLAIM_SECONDS = 5
UPLOAD_WAIT_SECONDS = 60.0
"""Maximum time that an upload waits for a slot before it is refused."""
TURNS, OTHERS_TURNS = 16, 2
PRINTS = 2
SHARED_PAGES = 2
ANALYSIS_NICENESS, ANSWER_NICENESS = 10, 5
"""Nobody waits for an analysis to run; people wait for answers and prints; pages come first."""

log = structlog.get_logger("tcpwin.service")


@dataclass(frozen=True)
class Skipped:
    """A file named when the service started that cannot be shown, and why."""

    name: str
    reason: str


class Service:
    """One running service."""

    def __init__(self, settings: Settings, shown: Sequence[Path] = (), executor: Executor | None = None) -> None:
        self.settings = settings
        self.shown = tuple(shown)
        self.data = DataFolder(settings.data)
        self.ledger = Ledger.of(settings)
        self.disk = Disk(self.data.path)
        self.database = Database(settings.url, sessions=self.ledger.sessions)
        limits: dict[str, Any] = {"memory_bytes": settings.job_memory_bytes, "held": self.data.workers}
        of_jobs = {**limits, "seconds": settings.job_seconds}
        workers = settings.workers
        self.executor = executor or _analyses_of(settings, **of_jobs, niceness=ANALYSIS_NICENESS)
        # Readers of a page do not wait for the analysis of another capture.
        self.answers = executor or ProcessExecutor(workers + 1, **of_jobs, niceness=ANSWER_NICENESS)
        self.prober = ProcessExecutor(1, **limits, seconds=WORKER_SECONDS)
        self.upload_threads = ThreadPoolExecutor(self.ledger.uploads, thread_name_prefix="upload")
        self.printing: set[threading.Event] = set()
        """One event per printing browser; setting it ends the browser."""
        self.print_threads = ThreadPoolExecutor(PRINTS, thread_name_prefix="print")
        self._page_threads = ThreadPoolExecutor(self.ledger.threads, thread_name_prefix="page")
        uploads = self.ledger.uploads
        self._uploads = FairSemaphore(
            uploads,
            each=max(uploads * 3 // 4, 1),
            guests=0,
            each_waiting=256,
            guests_waiting=0,
            reserved=-(-uploads // 8),
        )
        answers = FairSemaphore(
            workers + 1,
            each=workers,
            guests=max((workers + 1) // 2, 1),
            each_waiting=256,
            guests_waiting=32,
            reserved=1,
        )
        # A browser uses hundreds of megabytes of memory.
        self.prints = FairSemaphore(PRINTS, each=1, guests=1, each_waiting=64, guests_waiting=16, reserved=1)
        self.shared_pages = FairSemaphore(
            SHARED_PAGES, each=SHARED_PAGES, guests=SHARED_PAGES, each_waiting=256, guests_waiting=256
        )
        # One event loop makes all answers: fewer answers for others at the same time leave more of it to the owner's.
        self.turns = FairSemaphore(
            TURNS, each=TURNS - OTHERS_TURNS, guests=OTHERS_TURNS // 2, each_waiting=64, reserved=TURNS - OTHERS_TURNS
        )
        self.slots = {
            "uploads": self._uploads,
            "answers": answers,
            "prints": self.prints,
            "shared pages": self.shared_pages,
        }
        self.queue = Queue(self.database, self.data, self.executor, self.answers, workers=workers, slots=answers)
        self.captures = Captures(settings, self.database, self.data, self.disk, self.queue, self.upload_threads)
        self.twins = Twins(settings, self.data, self.queue)
        self.resumables = Resumables(settings, self.captures, self.ledger.uploads)
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
        """Files named when the service started that cannot be shown."""
        self._clock = Clock(self.data.path / "clock")
        self.is_ready = False
        self.failure: str | None = None
        """Why the service could not start, in words."""
        self.is_ending = False
        """Whether the service was asked to stop: open streams end, so that nobody waits for them."""
        self.streams = Account("progress streams", STREAMS)
        self.followers = Account("pages that follow the recorder", FOLLOWERS)
        self.watch = Watch(self.captures)
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Open the data folder and the database, and start working."""
        # Pages read files in separate threads.
        asyncio.get_running_loop().set_default_executor(self._page_threads)
        try:
            await self._open()
        except (InUseError, EncodingError) as error:
            self.failure = str(error)
            raise
        except OSError as error:
            self.failure = f"the data folder {self.data.path} cannot be used: {error.strerror or error}"
            raise
        except SQLAlchemyError as error:
            # Its text may contain the URL's password; the driver's message does not.
            self.failure = f"the database cannot be used: {getattr(error, 'orig', None) or type(error).__name__}"
            raise
        work = (self._add_shown(), self._sweep(), self._keep_claim(), self._settle_lost(), self.audit.keep_writing())
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
            # Release everything for the next service.
            await self.database.close()
            self.data.release()
            raise

    def begin_to_end(self) -> None:
        """Grant no more slots, and end streams; answers in progress continue."""
        self.is_ending = True
        for each in (self.turns, *self.slots.values()):
            each.close()
        self.resumables.close()

    def give_up_prints(self) -> None:
        """End all printing browsers through the threads that wait for them: browsers outlive this process otherwise."""
        for unwanted in tuple(self.printing):
            unwanted.set()

    @asynccontextmanager
    async def uploads(self) -> AsyncIterator[None]:
        """Hold a slot for an upload. The disk space reserved for deleting is not available to it."""
        async with waiting(), self._uploads.take(UPLOAD_WAIT_SECONDS):
            if await asyncio.to_thread(self._is_short):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            yield

    def _is_short(self) -> bool:
        """Whether the remaining disk space is reserved: for deleting, or for the owner."""
        return self.data.reserve.is_short or (not current_caller().is_owner and self.disk.left_bytes <= 0)

    async def stop(self) -> None:
        """Stop in order: running analyses start again with the next service."""
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
        # The process ends by the signal it received, and then waits for no thread.
        await asyncio.to_thread(self.print_threads.shutdown, cancel_futures=True)
        self.data.release()

    async def _add_shown(self) -> None:
        for path in self.shown:
            name = text_name(path.name)
            try:
                reason = await self.captures.add_shown(path)
            except Exception as error:
                log.exception("a capture could not be stored", file=name)
                reason = f"the service could not store it ({type(error).__name__})"
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
            except (SQLAlchemyError, OSError) as error:
                self.database.note_failure(error)
            except Exception:
                log.exception("expired data could not be deleted yet")
            await asyncio.sleep(SWEEP_SECONDS)

    async def _settle_lost(self) -> None:
        while True:
            await asyncio.sleep(CLAIM_SECONDS)
            try:
                await self.captures.settle_lost()
            except (SQLAlchemyError, OSError) as error:
                self.database.note_failure(error)

    async def _keep_claim(self) -> None:
        """Work only while no other service has the database: PostgreSQL forgets the claim when it restarts."""
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
                self.database.note_failure(error)


def _analyses_of(settings: Settings, held: Path, **limits: Any) -> Executor:
    """Return what runs analyses: processes on this machine, or a cluster."""
    if settings.executor is None:
        return ProcessExecutor(settings.workers, held=held, **limits)
    from tcpwin_web.jobs.cluster import ClusterExecutor

    return ClusterExecutor(settings.executor, settings.workers, **limits)
