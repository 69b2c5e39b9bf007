"""Twins of connections that are wanted, run or done: one at a time, in a process of its own, within limits.

A twin's answer is kept with its capture's results, and goes with them. One that runs when the service ends is begun
again by whoever asks for it again.
"""

import asyncio
import contextlib
import hashlib
import json
import os
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
from tcpwin_web.jobs.whatif import Asked
from tcpwin_web.settings import Settings
from tcpwin_web.storage import DataFolder

NICENESS = 15
"""Behind all else that the service does."""
KERNEL_BYTES = 2 << 30
"""Addresses that a kernel takes beside its hosts' memory, and the program that starts it."""
GRACE_SECONDS = 20.0
"""In which a run that is cancelled, or at its limit, ends by itself and leaves nothing behind."""
MOST_WAITING = 16

Status = Literal["none", "waiting", "running", "done", "failed"]

log = structlog.get_logger("tcpwin.twins")


@dataclass(frozen=True, slots=True)
class TwinState:
    """Where a twin is: status none, waiting, running, done or failed.

    Attributes:
        progress: of a running one: run, runs, elapsed_ns by the run's own clock, share of all.
        failure: of a failed one, in words.
        twin: of one that is done: as `tcpwin.lab.describe_twin` tells it, with `rows`.
    """

    status: Status = "none"
    progress: dict[str, Any] | None = None
    failure: str | None = None
    twin: dict[str, Any] | None = None


@dataclass(eq=False)
class _Wanted:
    """One that waits or runs."""

    place: Path | None = None
    is_cancelled: bool = False
    future: "asyncio.Future[Any] | None" = None
    task: "asyncio.Task[None] | None" = field(default=None, repr=False)

    def cancel(self) -> None:
        """End it: by itself where it runs, so that its kernel's files go with it."""
        self.is_cancelled = True
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
        )
        self._wanted: dict[Key, _Wanted] = {}

    @staticmethod
    def kernels() -> tuple[str, ...]:
        """The kernels of the lab that are built here; none: the lab is not set up."""
        return tuple(series for series in SERIES if kernel_path(series).is_file())

    async def start(self, capture_id: str, connection: int, asked: Asked, kernel: str = "") -> TwinState:
        """Run it, unless it waits or runs already; what an earlier run came to is forgotten.

        Args:
            kernel: which of the lab; empty: the one that counts receive memory as the receiver's does.

        Raises:
            ConflictError: the lab is not set up here, or too many wait.
        """
        there = await asyncio.to_thread(self.kernels)
        if not there or (kernel and kernel not in there):
            which, option = (f" {kernel}", f" --kernel {kernel}") if kernel else ("", "")
            raise ConflictError(
                f"the lab's kernel{which} is not built on this server: `tcpwin lab build{option}` does it once"
            )
        key = _key(capture_id, connection, asked, kernel)
        if key not in self._wanted:
            if len(self._wanted) >= MOST_WAITING:
                raise ConflictError(f"{MOST_WAITING} twins wait already")
            # Before anything is waited for: who asks in the same moment finds it.
            self._wanted[key] = wanted = _Wanted()
            wanted.task = asyncio.create_task(self._run(key, wanted, asked, kernel))
        return await self.state(capture_id, connection, asked, kernel)

    async def state(self, capture_id: str, connection: int, asked: Asked, kernel: str = "") -> TwinState:
        """Where it is."""
        key = _key(capture_id, connection, asked, kernel)
        wanted = self._wanted.get(key)
        if wanted is not None:
            progress = None if wanted.place is None else await asyncio.to_thread(_read, wanted.place / PROGRESS)
            return TwinState("waiting") if progress is None else TwinState("running", progress)
        stored = await asyncio.to_thread(_read, self._stored(key))
        return TwinState() if stored is None else TwinState(**stored)

    async def cancel(self, capture_id: str, connection: int, asked: Asked, kernel: str = "") -> TwinState:
        """End it where it waits or runs, and see it gone."""
        wanted = self._wanted.get(_key(capture_id, connection, asked, kernel))
        if wanted is not None and wanted.task is not None:
            wanted.cancel()
            await asyncio.wait([wanted.task])
        return await self.state(capture_id, connection, asked, kernel)

    def forget(self, capture_id: str) -> None:
        """End those of a capture that is deleted, or analysed again."""
        for key, wanted in self._wanted.items():
            if key[0] == capture_id:
                wanted.cancel()

    async def stop(self) -> None:
        """End all, and take no more."""
        tasks = [each.task for each in self._wanted.values() if each.task is not None]
        for each in list(self._wanted.values()):
            each.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await asyncio.to_thread(self._executor.shutdown, cancel_futures=True)

    async def _run(self, key: Key, wanted: _Wanted, asked: Asked, kernel: str) -> None:
        capture_id, connection, _ = key
        outcome: dict[str, Any] = {"status": "failed", "failure": "the service could not run it"}
        try:
            await asyncio.to_thread(self._stored(key).unlink, missing_ok=True)
            file_set = await self._queue.file_set(capture_id)
            with self._data.incoming() as place:
                wanted.place = place.path
                work = (file_set, connection, asked, kernel, str(place.path), self._limits)
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

    def _stored(self, key: Key) -> Path:
        capture_id, connection, digest = key
        return self._data.results(capture_id) / "twins" / f"{connection}-{digest}.json"

    def _store(self, key: Key, outcome: dict[str, Any]) -> None:
        path = self._stored(key)
        # Where the results are gone, nothing of a twin stays.
        with contextlib.suppress(OSError):
            path.parent.mkdir(mode=0o700, exist_ok=True)
            new = path.with_name(f"{path.name}.{os.getpid()}")
            new.write_text(json.dumps(outcome))
            new.replace(path)


def _key(capture_id: str, connection: int, asked: Asked, kernel: str) -> Key:
    return capture_id, connection, hashlib.sha256((repr(asked) + kernel).encode()).hexdigest()[:16]


def _read(path: Path) -> dict[str, Any] | None:
    try:
        told: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return told
