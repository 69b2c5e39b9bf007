"""Twins of connections: requested, running or done; one at a time, in its own process, within limits.

A twin's result is stored with its capture's results, and deleted with them. A twin that runs when the service ends
must be requested again.
"""

import asyncio
import contextlib
import hashlib
import json
import os
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import structlog
from sqlalchemy.exc import SQLAlchemyError

from tcpwin.lab import SERIES, kernel_path
from tcpwin_web.captures import ConflictError
from tcpwin_web.jobs import JobError, ProcessExecutor
from tcpwin_web.jobs.queue import Queue
from tcpwin_web.jobs.twin import CANCELLED, PROGRESS, Limits, try_twin
from tcpwin_web.jobs.whatif import WhatIfQuery
from tcpwin_web.ledger import TWINS, Account
from tcpwin_web.results import layout
from tcpwin_web.settings import Settings
from tcpwin_web.slots import FairSemaphore, waiting
from tcpwin_web.storage import DataFolder

NICENESS = 15
"""The lowest priority in the service."""
KERNEL_BYTES = 2 << 30
"""Address space of a kernel and of the program that starts it, besides its hosts' memory."""
GRACE_SECONDS = 20.0
"""Time for a cancelled or overdue run to end by itself and clean up."""

Status = Literal["none", "waiting", "running", "done", "failed"]

log = structlog.get_logger("tcpwin.twins")


@dataclass(frozen=True, slots=True)
class TwinState:
    """State of a twin: none, waiting, running, done or failed.

    Attributes:
        progress: progress of a running twin: run, runs, elapsed_ns by the run's own clock, share of all.
        failure: why a failed twin failed, in words.
        twin: result of a finished twin: see `tcpwin.lab.describe_twin`, with `rows`.
    """

    status: Status = "none"
    progress: dict[str, Any] | None = None
    failure: str | None = None
    twin: dict[str, Any] | None = None


@dataclass(eq=False)
class _Wanted:
    """A queued or running twin."""

    place: Path | None = None
    is_waiting: bool = False
    is_cancelled: bool = False
    future: "asyncio.Future[Any] | None" = None
    task: "asyncio.Task[None] | None" = field(default=None, repr=False)

    def cancel(self) -> None:
        """Cancel it; a running one ends by itself, so that its kernel's files are deleted."""
        self.is_cancelled = True
        if self.is_waiting and self.task is not None:
            self.task.cancel()
        if self.future is None or self.place is None or self.future.done():
            return
        with contextlib.suppress(OSError):
            (self.place / CANCELLED).touch()
        if (self.place / PROGRESS).exists():
            asyncio.get_running_loop().call_later(GRACE_SECONDS, self.future.cancel)
        else:
            self.future.cancel()


Key = tuple[str, int, str]


class Twins:
    """Runs twins, one after the other."""

    def __init__(self, settings: Settings, data: DataFolder, queue: Queue) -> None:
        self._data = data
        self._queue = queue
        self._limits = Limits(settings.job_seconds, settings.job_memory_bytes)
        self._executor = ProcessExecutor(
            1,
            memory_bytes=settings.job_memory_bytes + KERNEL_BYTES,
            seconds=settings.job_seconds + GRACE_SECONDS,
            niceness=NICENESS,
            # A twin's hosts are separate kernels, connected by sockets of this one.
            is_offline=False,
        )
        self._wanted: dict[Key, _Wanted] = {}
        self._account = Account("twins", TWINS)
        # A caller's second twin waits until the first twins of all others have run.
        self._turns = FairSemaphore(1, each=1, guests=1, outlasts_callers=True)

    @staticmethod
    def kernels() -> tuple[str, ...]:
        """Return the lab's kernels that are built here; empty if the lab is not set up."""
        return tuple(series for series in SERIES if kernel_path(series).is_file())

    async def start(self, capture_id: str, connection: int, query: WhatIfQuery, kernel: str = "") -> TwinState:
        """Run a twin, unless it is queued or running; an earlier result is discarded.

        Args:
            kernel: a kernel of the lab; empty: the one that accounts receive memory as the receiver's does.

        Raises:
            ConflictError: the lab is not set up here.
            BusyError: too many twins wait.
        """
        there = await asyncio.to_thread(self.kernels)
        if not there or (kernel and kernel not in there):
            which, option = (f" {kernel}", f" --kernel {kernel}") if kernel else ("", "")
            raise ConflictError(
                f"the lab's kernel{which} is not built on this server: run `tcpwin lab build{option}` once"
            )
        key = _key(capture_id, connection, query, kernel)
        if key not in self._wanted:
            held = ExitStack()
            held.enter_context(self._account.hold())
            # Before the first await: a concurrent request finds it.
            self._wanted[key] = wanted = _Wanted()
            wanted.task = asyncio.create_task(self._run(key, wanted, query, kernel))
            wanted.task.add_done_callback(lambda _: held.close())
        return await self.state(capture_id, connection, query, kernel)

    async def state(self, capture_id: str, connection: int, query: WhatIfQuery, kernel: str = "") -> TwinState:
        """Return the state of a twin."""
        key = _key(capture_id, connection, query, kernel)
        wanted = self._wanted.get(key)
        if wanted is not None:
            progress = None if wanted.place is None else await asyncio.to_thread(_read, wanted.place / PROGRESS)
            return TwinState("waiting") if progress is None else TwinState("running", progress)
        stored = await asyncio.to_thread(_read, self._stored(key))
        return TwinState() if stored is None else TwinState(**stored)

    async def cancel(self, capture_id: str, connection: int, query: WhatIfQuery, kernel: str = "") -> TwinState:
        """Cancel a queued or running twin, and wait for its end."""
        wanted = self._wanted.get(_key(capture_id, connection, query, kernel))
        if wanted is not None and wanted.task is not None:
            wanted.cancel()
            async with waiting():
                await asyncio.wait([wanted.task])
        return await self.state(capture_id, connection, query, kernel)

    def forget(self, capture_id: str) -> None:
        """Cancel the twins of a capture that is deleted."""
        for key, wanted in self._wanted.items():
            if key[0] == capture_id:
                wanted.cancel()

    async def stop(self) -> None:
        """Cancel all twins, and accept no more."""
        tasks = [each.task for each in self._wanted.values() if each.task is not None]
        for each in list(self._wanted.values()):
            each.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await asyncio.to_thread(self._executor.shutdown, cancel_futures=True)

    async def _run(self, key: Key, wanted: _Wanted, query: WhatIfQuery, kernel: str) -> None:
        capture_id, connection, _ = key
        outcome: dict[str, Any] = {"status": "failed", "failure": "the service could not run it"}
        try:
            await asyncio.to_thread(self._stored(key).unlink, missing_ok=True)
            file_set = await self._queue.file_set(capture_id)
            async with self._turn_of(wanted):
                with self._data.incoming() as place:
                    wanted.place = place.path
                    work = (file_set, connection, query, kernel, str(place.path), self._limits)
                    wanted.future = asyncio.wrap_future(self._executor.submit(try_twin, *work))
                    if wanted.is_cancelled:
                        wanted.future.cancel()
                    outcome = {"status": "done", "twin": await wanted.future}
        except JobError as error:
            outcome["failure"] = str(error)
        except asyncio.CancelledError:
            wanted.is_cancelled = True
        except (OSError, SQLAlchemyError) as error:
            log.warning("a twin could not be run", capture=capture_id, reason=str(error))
        finally:
            if not wanted.is_cancelled:
                await asyncio.to_thread(self._store, key, outcome)
            del self._wanted[key]
            log.info("twin ended", capture=capture_id, connection=connection, outcome=outcome["status"])

    @asynccontextmanager
    async def _turn_of(self, wanted: _Wanted) -> AsyncIterator[None]:
        """Wait until the twin may run, or is cancelled."""
        if wanted.is_cancelled:
            raise asyncio.CancelledError
        wanted.is_waiting = True
        async with self._turns.take():
            wanted.is_waiting = False
            yield

    def _stored(self, key: Key) -> Path:
        capture_id, connection, digest = key
        return self._data.results(capture_id) / layout.TWINS / f"{connection}-{digest}.json"

    def _store(self, key: Key, outcome: dict[str, Any]) -> None:
        path = self._stored(key)
        # If the results are gone, the twin's result is dropped.
        with contextlib.suppress(OSError):
            path.parent.mkdir(mode=0o700, exist_ok=True)
            new = path.with_name(f"{path.name}.{os.getpid()}")
            new.write_text(json.dumps(outcome))
            new.replace(path)


def _key(capture_id: str, connection: int, query: WhatIfQuery, kernel: str) -> Key:
    return capture_id, connection, hashlib.sha256((repr(query) + kernel).encode()).hexdigest()[:16]


def _read(path: Path) -> dict[str, Any] | None:
    try:
        document: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return document
