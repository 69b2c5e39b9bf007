"""Uploads of a file in several requests: what arrived of one stays while its connection is away.

What arrives goes on through the reader that an upload in one request has: packets' payloads are cut before anything
reaches the disk. So an unfinished upload holds a thread, and what there is of it ends with the service.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import structlog

from tcpwin_web import metrics
from tcpwin_web.captures import Captures
from tcpwin_web.places import BusyError, current_caller
from tcpwin_web.settings import Settings
from tcpwin_web.storage.models import File, new_id
from tcpwin_web.uploads.kinds import Kind
from tcpwin_web.uploads.stream import Arriving, UploadError

MOST_FINISHED = 1000
"""Of which is still known that they came to their end, for who did not hear so; beyond, the oldest are forgotten."""

log = structlog.get_logger("tcpwin.uploads")


@dataclass(eq=False)
class Resumable:
    """One upload.

    Attributes:
        length_bytes: of the whole file.
        touched: when something of it arrived last, seconds on the clock that never jumps.
        storing: what becomes of it: its files.
        taking: the request that brings some of it now.
    """

    id: str
    capture_id: str
    length_bytes: int
    caller: str
    file: Arriving
    storing: "asyncio.Task[Sequence[File]]"
    touched: float = field(default_factory=time.monotonic)
    taking: "asyncio.Task[None] | None" = None
    has_ended: bool = False

    @property
    def offset_bytes(self) -> int:
        """How much of it arrived."""
        return self.file.received_bytes

    @property
    def is_finished(self) -> bool:
        """Whether it is stored, or was refused: a capture may have ended before its file does."""
        return self.storing.done()

    async def let_go(self) -> None:
        """End the request that brings some of it: whoever asks anew knows that its connection is gone."""
        if self.taking is not None:
            self.taking.cancel()
            await asyncio.wait({self.taking})

    async def settle(self) -> None:
        """Where all of it arrived, wait until it is stored; raise why it cannot be taken, where that is known."""
        if self.offset_bytes == self.length_bytes and not self.has_ended:
            self.has_ended = True
            self.file.end()
        if self.has_ended or self.is_finished:
            await asyncio.shield(self.storing)

    async def fail(self, error: UploadError) -> None:
        """Give it up; what was stored of it is deleted."""
        await self.let_go()
        self.file.fail(error)
        await asyncio.wait({self.storing})


class Resumables:
    """All unfinished uploads of the service, and the last that were finished."""

    def __init__(self, settings: Settings, captures: Captures) -> None:
        self._captures = captures
        self._seconds = settings.resume_minutes * 60
        self._max_bytes = settings.max_upload_bytes
        self._most = settings.uploads
        self._each = max(settings.uploads * 3 // 4, 1)
        self._threads = ThreadPoolExecutor(settings.uploads, thread_name_prefix="resumable")
        self._known: dict[str, Resumable] = {}
        self._is_closed = False

    async def create(self, capture_id: str, name: str, kind: Kind | None, length_bytes: int) -> Resumable:
        """Begin one.

        Raises:
            NotFoundError, ConflictError, UploadError: the capture takes no file, or none of this length.
            BusyError: too many are unfinished.
        """
        if length_bytes > self._max_bytes:
            raise UploadError(413, f"a file may have {self._max_bytes:,} bytes at most")
        if not length_bytes:
            raise UploadError(422, f"{name}: an empty file")
        await self._captures.require_open(capture_id)
        await self.sweep()
        caller = current_caller().name
        unfinished = [each.caller for each in self._known.values() if not each.is_finished]
        if self._is_closed or len(unfinished) >= self._most or unfinished.count(caller) >= self._each:
            raise BusyError("too many uploads are unfinished: resume or delete one of them, or try again later")
        file = Arriving(max_bytes=length_bytes)
        storing = asyncio.create_task(self._captures.add(capture_id, file, name, kind, threads=self._threads))
        storing.add_done_callback(lambda task: _stored(task, file))
        made = Resumable(new_id(), capture_id, length_bytes, caller, file, storing)
        self._known[made.id] = made
        return made

    async def get(self, capture_id: str, id: str) -> Resumable:
        """One that is known, as far as it arrived: whatever brought some of it has ended.

        Raises:
            UploadError: 404, there is none, or its time is over; or why it was refused.
        """
        await self.sweep()
        found = self._known.get(id)
        if found is None or found.capture_id != capture_id:
            raise UploadError(404, "no upload has this id: it was deleted, not resumed in time, or of an earlier run")
        await found.let_go()
        await self._settle(found)
        return found

    async def write(self, upload: Resumable, chunks: AsyncIterator[bytes]) -> None:
        """Take more of one, and all that arrives where the connection is lost meanwhile.

        Raises:
            UploadError: 423, another request goes on with it; or why it cannot be taken.
        """
        before = upload.offset_bytes
        taking = upload.taking = asyncio.create_task(upload.file.take(_at_most(upload, chunks)))
        try:
            await asyncio.wait({taking})
        finally:
            taking.cancel()
            upload.taking = None if upload.taking is taking else upload.taking
            upload.touched = time.monotonic()
            metrics.UPLOADED_BYTES.inc(upload.offset_bytes - before)
            if self._is_closed and upload.offset_bytes < upload.length_bytes:
                upload.file.fail(_ENDS)
        if taking.cancelled():
            raise UploadError(423, "another request goes on with this upload")
        if upload.is_finished or taking.exception() is None:
            await self._settle(upload)
        taking.result()

    async def delete(self, upload: Resumable) -> None:
        """Forget one; of an unfinished one nothing stays."""
        self._known.pop(upload.id, None)
        if not upload.is_finished:
            await upload.fail(UploadError(499, "the upload was deleted"))

    def left_seconds(self, upload: Resumable) -> float:
        """How long it can still be resumed, if nothing of it comes."""
        return max(upload.touched + self._seconds - time.monotonic(), 0)

    async def sweep(self) -> None:
        """Give up those whose time is over, with captures that waited for nothing else."""
        for each in [each for each in self._known.values() if each.taking is None and not self.left_seconds(each)]:
            was_finished = each.is_finished
            await self.delete(each)
            if not was_finished:
                log.info("an upload was not resumed", capture=each.capture_id, received_bytes=each.offset_bytes)
                await self._captures.delete_if_empty(each.capture_id)
        finished = [each.id for each in self._known.values() if each.is_finished]
        for id in finished[: max(len(finished) - MOST_FINISHED, 0)]:
            del self._known[id]

    def close(self) -> None:
        """Take no more, and give up those that no request brings now."""
        self._is_closed = True
        for each in self._known.values():
            if each.taking is None and not each.has_ended:
                each.file.fail(_ENDS)

    async def stop(self) -> None:
        """Give up all; wait until nothing of them is being stored."""
        self.close()
        for each in self._known.values():
            if not each.is_finished:
                await each.fail(_ENDS)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _settle(self, upload: Resumable) -> None:
        try:
            await upload.settle()
        except asyncio.CancelledError:
            raise
        except BaseException:
            self._known.pop(upload.id, None)
            raise


_ENDS = UploadError(503, "the service ends: send the file again to the next one")


def _stored(task: "asyncio.Task[Sequence[File]]", file: Arriving) -> None:
    file.abandon()
    # It is asked for by whoever resumes; nobody may.
    if not task.cancelled():
        task.exception()


async def _at_most(upload: Resumable, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The chunks of a request, as long as the file has so many bytes."""
    left = upload.length_bytes - upload.offset_bytes
    async for chunk in chunks:
        if len(chunk) > left:
            raise UploadError(413, f"more than the {upload.length_bytes:,} bytes that were announced")
        left -= len(chunk)
        yield chunk
