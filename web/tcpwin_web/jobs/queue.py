"""Run queued analyses: take the oldest, run it in a worker, record its outcome.

Analyses that were running when a service ended start again with the next one. Never blocks the event loop.
"""

import asyncio
import contextlib
import contextvars
import errno
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import structlog
from sqlalchemy import delete, func, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import selectinload

from tcpwin.sources import Selection
from tcpwin_web import metrics
from tcpwin_web.jobs import work
from tcpwin_web.jobs.answers import own_names, prepare_shared
from tcpwin_web.jobs.detail import detail_connections, prepare_capture, write_series_of
from tcpwin_web.jobs.executor import Executor, JobError, LostError, ScarceError
from tcpwin_web.results import layout
from tcpwin_web.slots import Caller, FairSemaphore, GoneError, current_caller, set_caller, waiting
from tcpwin_web.storage import Database, DataFolder
from tcpwin_web.storage.models import Capture, File, HostPair, Job, now_ns
from tcpwin_web.tracing import set_attributes, tracing

T = TypeVar("T")

MOST_ATTEMPTS = 3
"""Maximum number of starts of one analysis: beyond, it may be what kills the service."""
POLL_SECONDS = 2.0
MAX_REASON = 2000
KEPT = "the last analysis failed, and these results are from an earlier one"
MOST_LOST = 2
OWNER = "owner "
"""Prefix of a job's owner with full access."""
MOST_SCARCE_SECONDS = 30.0
MOST_WAIT_SECONDS = 300.0
"""Maximum wait for a slot in which to prepare an answer."""

log = structlog.get_logger("tcpwin.jobs")


@dataclass(eq=False)
class _SharedWork:
    """Work that several callers may wait for; it ends when the last of them leaves."""

    task: "asyncio.Future[Any]"
    caller: Caller
    waiting: int = 0


class Queue:
    """Runs queued analyses, as many at the same time as there are workers."""

    def __init__(
        self,
        database: Database,
        data: DataFolder,
        executor: Executor,
        answers: Executor,
        *,
        workers: int,
        slots: FairSemaphore,
    ) -> None:
        """Create the queue.

        Args:
            executor: runs analyses.
            answers: runs calls that people wait for, as many at the same time as `slots` allows.
        """
        self._database = database
        self._data = data
        self._executor = executor
        self._answers = answers
        self._slots = slots
        self._workers = asyncio.Semaphore(workers)
        self._worker_count = workers
        self._wake = asyncio.Event()
        self._ended = asyncio.Event()
        # None until the analysis of a capture is submitted to a worker.
        self._running: dict[str, asyncio.Future[Any] | None] = {}
        self._owners: dict[str, str] = {}
        self._served: dict[str, float] = {}
        self._unwanted: set[str] = set()
        self._preparing: dict[str, asyncio.Future[Any]] = {}
        self._details: dict[tuple[str, str], _SharedWork] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._main: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Queue again what an earlier service did not finish, and start."""
        async with self._database.change() as session:
            unfinished = (await session.scalars(select(Job).where(Job.status == "running"))).all()
            for job in unfinished:
                if job.attempts >= MOST_ATTEMPTS:
                    reason = f"it was started {job.attempts} times, and each time the service ended"
                    await _finish(session, job, "failed", reason)
                else:
                    job.status = "queued"
                    await session.execute(update(Capture).where(Capture.id == job.capture_id).values(status="queued"))
        self._main = asyncio.create_task(self._loop())

    async def stop(self) -> None:
        """Take no more analyses. Rows of running ones stay: the next service starts them again."""
        async with self._database.at_rest():
            details = [each.task for each in self._details.values()]
            tasks = [*self._tasks, *details, *([self._main] if self._main else [])]
            for task in tasks:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def is_working(self) -> bool:
        """Whether analyses are started."""
        return self._main is not None and not self._main.done()

    def wake(self) -> None:
        """Look for new rows now."""
        self._wake.set()

    async def wait(self, seconds: float) -> None:
        """Wait until an analysis has ended, or for this long."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), seconds)

    def end(self, capture_id: str) -> None:
        """Cancel the work on a capture: its running analysis, or what is prepared after it."""
        if capture_id in self._preparing:
            self._preparing[capture_id].cancel()
        if capture_id in self._running:
            self._unwanted.add(capture_id)
            running = self._running[capture_id]
            if running is not None:
                running.cancel()

    def bytes_read(self, capture_id: str) -> int | None:
        """Return the bytes read so far by the running analysis of a capture, or None if unknown."""
        try:
            return int((self._data.unfinished(capture_id) / layout.PROGRESS).read_text() or 0)
        except (OSError, ValueError):
            return None

    async def detail(self, capture_id: str, connection: int) -> None:
        """Make the details of a connection if necessary; several callers wait for the same work.

        Raises:
            JobError: they cannot be made.
        """
        folder = layout.connection(connection)
        if not (self._data.results(capture_id) / folder).is_dir():
            await self.once(capture_id, folder, lambda: self._make(capture_id, detail_connections, [connection]))

    async def series(self, capture_id: str, connection: int) -> Path:
        """Return the folder with a connection's series, made if necessary: they are ready long before all its details.

        Raises:
            JobError: they cannot be made.
        """
        results = self._data.results(capture_id)
        detailed, alone = layout.connection(connection), layout.series(connection)
        if (results / detailed).is_dir():
            return results / detailed
        if not (results / alone).is_dir():
            await self.once(capture_id, alone, lambda: self._make(capture_id, write_series_of, connection))
        return results / alone

    async def shared(self, capture_id: str) -> Path:
        """Return the folder of results without names and host data, made if necessary.

        Raises:
            JobError: they cannot be made.
        """
        folder = self._data.results(capture_id)
        file_set = await self.file_set(capture_id)
        is_nameless = all(file.kind == "capture" for file in file_set.files)
        if is_nameless and not await asyncio.to_thread(_names_any, folder, own_names(file_set)):
            return folder
        if not (folder / layout.SHARED).is_dir():
            await self.once(capture_id, layout.SHARED, lambda: self._make_shared(file_set, capture_id))
        return folder / layout.SHARED

    async def once(self, capture_id: str, name: str, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a call once for all callers who ask for the same of a capture.

        The work continues if a caller leaves, until the last one does.
        """
        key, caller = (capture_id, name), current_caller()
        while True:
            work = self._details.get(key) or self._begin(key, make)
            work.waiting += 1
            try:
                async with waiting():
                    found: T = await caller.await_unless_gone(asyncio.shield(work.task))
            except GoneError:
                if caller.gone.is_set():
                    raise
                # All other callers left: the work they waited for is ending.
                continue
            else:
                return found
            finally:
                work.waiting -= 1
                if not work.waiting:
                    work.caller.gone.set()

    def _begin(self, key: tuple[str, str], make: Callable[[], Coroutine[Any, Any, Any]]) -> _SharedWork:
        first = current_caller()
        caller = Caller(first.name, first.is_guest)
        context = contextvars.copy_context()
        context.run(set_caller, caller)
        task = asyncio.get_running_loop().create_task(make(), context=context)
        self._details[key] = shared = _SharedWork(task, caller)
        task.add_done_callback(lambda _: self._details.pop(key, None))
        # Nobody retrieves the exception once the callers have left.
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        return shared

    async def file_set(self, capture_id: str) -> work.FileSet:
        """Return a capture's files in the form workers take."""
        async with self._database.begin() as session:
            found = await session.get(Capture, capture_id, options=[selectinload(Capture.files)])
            if found is None:
                raise JobError("the capture was deleted")
            files = tuple(self._stored(file) for file in found.files)
            selection = None if found.selection is None else Selection(**found.selection)
            return work.FileSet(found.name, files, str(self._data.results(capture_id)), found.window_scales, selection)

    async def run(self, fn: Any, *args: Any) -> Any:
        """Run a call that somebody waits for, in a worker separate from analyses; it ends if the caller leaves.

        Raises:
            JobError: it has no result.
            BusyError: no slot was free.
            GoneError: the caller left.
        """
        with tracing.span(fn.__name__):
            return await self._run(fn, *args)

    async def _run(self, fn: Any, *args: Any) -> Any:
        caller = current_caller()
        async with waiting(), self._slots.take(MOST_WAIT_SECONDS):
            try:
                return await caller.await_unless_gone(asyncio.wrap_future(self._answers.submit(fn, *args)))
            except LostError as error:
                log.warning("a process was lost; its call is run again", reason=str(error))
            return await caller.await_unless_gone(asyncio.wrap_future(self._answers.submit(fn, *args)))

    def _stored(self, file: File) -> work.StoredFile:
        return work.StoredFile(
            str(self._data.blob(file.sha256)), file.name, file.label, file.kind, file.facts, tuple(file.notes or ())
        )

    async def _make(self, capture_id: str, fn: Any, *args: Any) -> None:
        file_set = await self.file_set(capture_id)
        await self._write_results(capture_id, fn, file_set, *args)

    async def _make_shared(self, file_set: work.FileSet, capture_id: str) -> None:
        await self._write_results(capture_id, prepare_shared, file_set)

    async def _write_results(self, capture_id: str, fn: Any, file_set: work.FileSet, *args: Any) -> None:
        """Let a worker write into a capture's results; delete them if the capture is deleted meanwhile."""
        try:
            await self.run(fn, file_set, str(self._data.results(capture_id)), *args)
        finally:
            await self._forget_deleted(capture_id)

    async def _forget_deleted(self, capture_id: str) -> None:
        async with self._database.begin() as session:
            is_there = await session.get(Capture, capture_id) is not None
        if not is_there:
            await asyncio.to_thread(self._data.forget_results, capture_id)

    async def _loop(self) -> None:
        while True:
            await self._workers.acquire()
            try:
                job = await self._take()
            except (SQLAlchemyError, OSError) as error:
                # The database may be full or unavailable for a while: the row is still there.
                self._database.note_failure(error)
                job = None
            except Exception:
                log.exception("no analysis could be taken")
                job = None
            if job is None:
                self._workers.release()
                self._wake.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), POLL_SECONDS)
                continue
            self._spawn(self._work(job))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _take(self) -> Job | None:
        """Mark a queued row as running and return it: the oldest of the caller whose turn it is."""
        async with self._database.change() as session:
            waiting = select(Job.owner, func.min(Job.created_ns)).where(Job.status == "queued").group_by(Job.owner)
            since: dict[str, int] = dict(list(await session.execute(waiting)))
            if not since:
                return None
            held = Counter(self._owners.values())
            since = {each: at for each, at in since.items() if self._may_run_more(each, held)}
            if not since:
                return None
            owner = min(since, key=lambda each: (held[each], self._served.get(each, 0.0), since[each]))
            oldest = select(Job).where(Job.status == "queued", Job.owner == owner).order_by(Job.created_ns).limit(1)
            job = await session.scalar(oldest)
            if job is None:
                return None
            job.status, job.started_ns, job.attempts = "running", now_ns(), job.attempts + 1
            self._running[job.capture_id] = None
            self._owners[job.capture_id] = owner
            here = {*since, *self._owners.values()}
            self._served = {each: at for each, at in self._served.items() if each in here}
            self._served[owner] = time.monotonic()
            await session.execute(update(Capture).where(Capture.id == job.capture_id).values(status="running"))
            return job

    def _may_run_more(self, owner: str, held: Counter[str]) -> bool:
        """Whether a caller may have another worker: one of several is reserved for the owner."""
        if owner.startswith(OWNER) or not owner:
            return True
        others = sum(count for each, count in held.items() if each and not each.startswith(OWNER))
        return others < max(self._worker_count - 1, 1)

    async def _work(self, job: Job) -> None:
        capture_id, began = job.capture_id, time.monotonic()
        try:
            with tracing.span("analysis") as span:
                status, reason, shown = await self._outcome(capture_id)
                set_attributes(span, tcpwin__capture__id=capture_id, tcpwin__outcome=status)
        except asyncio.CancelledError:
            await asyncio.shield(self._give_back(job.id))
            raise
        finally:
            self._owners.pop(capture_id, None)
            self._workers.release()
        if status != "done":
            await asyncio.to_thread(self._data.forget_unfinished, capture_id)
        metrics.ANALYSES.labels(status).inc()
        metrics.ANALYSIS_SECONDS.observe(time.monotonic() - began)
        log.info("analysis ended", capture=capture_id, outcome=status, reason=reason)
        while not await self._record(job, status, reason, shown):
            # The disk may be full, or the database unavailable: the result must not be lost.
            await asyncio.sleep(POLL_SECONDS)
        self._ended.set()
        self._ended = asyncio.Event()
        if status == "done" and shown["connections"]:
            await self._prepare(capture_id)

    async def _settle_details(self, capture_id: str) -> None:
        """Keep details of an earlier analysis out of the results of the next."""
        if capture_id in self._preparing:
            self._preparing[capture_id].cancel()
        details = [each.task for (id, _), each in self._details.items() if id == capture_id]
        await asyncio.gather(*details, return_exceptions=True)

    async def _outcome(self, capture_id: str) -> tuple[str, str | None, dict[str, Any]]:
        try:
            await self._settle_details(capture_id)
            file_set = await self._file_set_when_there(capture_id)
            return "done", None, await self._analyze_again(capture_id, file_set)
        except JobError as error:
            return "failed", str(error)[:MAX_REASON], {}
        except asyncio.CancelledError:
            # Either the analysis was cancelled, or the service ends and cancels this task.
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return "cancelled", None, {}
        except Exception as error:
            log.exception("an analysis failed", capture=capture_id)
            return "failed", f"the service could not run it ({type(error).__name__})", {}
        finally:
            self._running.pop(capture_id, None)
            self._unwanted.discard(capture_id)

    async def _analyze_again(self, capture_id: str, file_set: work.FileSet) -> dict[str, Any]:
        """Analyse a capture; once more if its process is lost, and until the system has what it needs."""
        attempts, seconds = 0, POLL_SECONDS
        while True:
            try:
                return await self._analyze(capture_id, file_set)
            except LostError as error:
                # Memory may be short because of this analysis: then it ends.
                attempts += not isinstance(error, ScarceError) or os.strerror(errno.ENOMEM) in str(error)
                if attempts >= MOST_LOST:
                    raise
                log.warning("a process was lost; its analysis is run again", capture=capture_id, reason=str(error))
                if isinstance(error, ScarceError):
                    await asyncio.sleep(seconds)
                    seconds = min(2 * seconds, MOST_SCARCE_SECONDS)

    async def _analyze(self, capture_id: str, file_set: work.FileSet) -> dict[str, Any]:
        folder, unfinished = self._data.results(capture_id), self._data.unfinished(capture_id)
        submitted = self._executor.submit(work.analyze_file_set, file_set, str(folder), str(unfinished))
        future = asyncio.wrap_future(submitted)
        self._running[capture_id] = future
        if capture_id in self._unwanted:
            future.cancel()
        return await future

    async def _file_set_when_there(self, capture_id: str) -> work.FileSet:
        """Return a capture's files, waiting while the database is unavailable."""
        while True:
            try:
                return await self.file_set(capture_id)
            except (SQLAlchemyError, OSError) as error:
                self._database.note_failure(error)
                await asyncio.sleep(POLL_SECONDS)

    async def _record(self, job: Job, status: str, reason: str | None, shown: dict[str, Any]) -> bool:
        """Record the outcome of an analysis; return False if the database cannot be written now."""
        try:
            async with self._database.change() as session:
                row = await session.get(Job, job.id)
                if row is None:
                    self._data.forget_results(job.capture_id)
                else:
                    await _finish(session, row, status, reason, **shown)
        except (SQLAlchemyError, OSError) as error:
            self._database.note_failure(error)
            return False
        return True

    async def _give_back(self, job_id: str) -> None:
        """Queue a job again as the service stops; this start does not count."""
        async with self._database.change() as session:
            job = await session.get(Job, job_id)
            if job is not None:
                job.status, job.attempts = "queued", job.attempts - 1
                await session.execute(update(Capture).where(Capture.id == job.capture_id).values(status="queued"))

    async def _prepare(self, capture_id: str) -> None:
        """Write the figure of all connections and the details of the worst, which people open first."""
        try:
            document = await asyncio.to_thread(self._read_capture, capture_id)
            folder = str(self._data.results(capture_id))
            file_set = await self.file_set(capture_id)
            future = asyncio.wrap_future(self._executor.submit(prepare_capture, file_set, folder, document["worst"]))
            self._preparing[capture_id] = future
            await future
        except (JobError, OSError, SQLAlchemyError) as error:
            log.warning("details were not prepared", capture=capture_id, reason=str(error))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
        finally:
            self._preparing.pop(capture_id, None)
        with contextlib.suppress(SQLAlchemyError):
            await self._forget_deleted(capture_id)

    def _read_capture(self, capture_id: str) -> dict[str, Any]:
        from tcpwin_web.results.queries import read_document

        document: dict[str, Any] = read_document(self._data.results(capture_id), layout.CAPTURE)
        return document


def _names_any(folder: Path, names: Collection[str]) -> bool:
    """Whether the results of a capture contain one of these names: findings name damaged files."""
    from tcpwin_web.results.queries import read_sentences

    text = read_sentences(folder)
    return any(json.dumps(name)[1:-1] in text for name in names)


async def _finish(session: AsyncSession, job: Job, status: str, reason: str | None, **shown: Any) -> None:
    job.status, job.failure, job.finished_ns = status, reason, now_ns()
    if status == "done":
        await session.execute(delete(HostPair).where(HostPair.capture_id == job.capture_id))
        session.add_all(HostPair(capture_id=job.capture_id, **each) for each in shown.pop("pairs"))
    capture = await session.get(Capture, job.capture_id)
    if status != "done" and capture is not None and capture.has_results:
        # The results of an earlier analysis stay until a later one succeeds.
        status, reason = "done", reason and f"{KEPT}: {reason}"[:MAX_REASON]
    await session.execute(
        update(Capture).where(Capture.id == job.capture_id).values(status=status, failure=reason, **shown)
    )
