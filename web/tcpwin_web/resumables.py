"""Uploads of a file in several requests: received data is kept while the client is disconnected.

The data passes through the same reader as an upload in one request: payloads are cut before anything reaches the disk.
An unfinished upload therefore holds a thread, and is lost when the service ends.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import structlog

from tcpwin_web import metrics
from tcpwin_web.captures import Captures
from tcpwin_web.settings import Settings
from tcpwin_web.slots import BusyError, current_caller, waiting
from tcpwin_web.storage.models import File, new_id
from tcpwin_web.uploads.kinds import Kind
from tcpwin_web.uploads.stream import Arriving, UploadError

MOST_FINISHED = 1000
"""Finished uploads that are remembered for clients that missed the answer; the oldest are forgotten first."""

log = structlog.get_logger("tcpwin.uploads")


@dataclass(eq=False)
class Resumable:
    """One upload.

    Attributes:
        length_bytes: size of the whole file.
        touched: time of the last arrival, seconds on a monotonic clock.
        storing: the task that stores it, with its files as the result.
        taking: the request that is sending a part now.
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
        """Number of bytes that have arrived."""
        return self.file.received_bytes

    @property
    def is_finished(self) -> bool:
        """Whether it is stored or refused: a capture may end before its file does."""
        return self.storing.done()

    async def interrupt(self) -> None:
        """End the request that is sending a part: a client asks again only after it lost that connection."""
        if self.taking is not None:
            self.taking.cancel()
            await asyncio.wait({self.taking})

    async def settle(self) -> None:
        """Wait until a complete upload is stored; raise the reason if it was refused."""
        if self.offset_bytes == self.length_bytes and not self.has_ended:
            self.has_ended = True
            self.file.end()
        if self.has_ended or self.is_finished:
            async with waiting():
                await asyncio.shield(self.storing)

    async def fail(self, error: UploadError) -> None:
        """Abandon the upload, and delete its data."""
        await self.interrupt()
        self.file.fail(error)
        await asyncio.wait({self.storing})


class Resumables:
    """All unfinished uploads of the service, and the last finished ones."""

    def __init__(self, settings: Settings, captures: Captures, most: int) -> None:
        """Create a collection of at most `most` unfinished uploads; one caller may have three quarters of them."""
        self._captures = captures
        self._seconds = settings.resume_minutes * 60
        self._max_bytes = settings.max_upload_bytes
        self._most = most
        self._each = max(most * 3 // 4, 1)
        self._reserved = -(-most // 8)
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="resumable")
        self._known: dict[str, Resumable] = {}
        self._is_closed = False

    async def create(self, capture_id: str, name: str, kind: Kind | None, length_bytes: int) -> Resumable:
        """Begin an upload.

        Raises:
            NotFoundError, ConflictError, UploadError: the capture accepts no file, or none of this size.
            BusyError: too many are unfinished.
        """
        if length_bytes > self._max_bytes:
            raise UploadError(413, f"a file may have {self._max_bytes:,} bytes at most")
        if not length_bytes:
            raise UploadError(422, f"{name}: an empty file")
        await self._captures.require_open(capture_id)
        await self.sweep()
        caller = current_caller().name
        allowed = self._most - (0 if current_caller().is_owner else self._reserved)
        unfinished = [each.caller for each in self._known.values() if not each.is_finished]
        if self._is_closed or len(unfinished) >= max(allowed, 1) or unfinished.count(caller) >= self._each:
            raise BusyError("too many uploads are unfinished: resume or delete one of them, or try again later")
        file = Arriving(max_bytes=length_bytes)
        storing = asyncio.create_task(self._captures.add(capture_id, file, name, kind, threads=self._threads))
        storing.add_done_callback(lambda task: _stored(task, file))
        made = Resumable(new_id(), capture_id, length_bytes, caller, file, storing)
        self._known[made.id] = made
        return made

    async def get(self, capture_id: str, id: str) -> Resumable:
        """Return an upload, after ending any request that is sending a part of it.

        Raises:
            UploadError: 404, it does not exist or has expired; or the reason why it was refused.
        """
        await self.sweep()
        found = self._known.get(id)
        if found is None or found.capture_id != capture_id:
            raise UploadError(404, "no upload has this id: it was deleted, expired, or lost when the service restarted")
        await found.interrupt()
        await self._settle(found)
        return found

    async def write(self, upload: Resumable, offset: int, chunks: AsyncIterator[bytes]) -> None:
        """Receive a part that begins at this offset; if the connection is lost, keep what arrived.

        Raises:
            UploadError: 409, another part has arrived or is arriving; 423, another request took over; or the reason
                why it was refused.
        """
        require_offset(upload, offset)
        if upload.taking is not None:
            raise UploadError(409, "another request is sending a part of this upload")
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
            raise UploadError(423, "another request is sending a part of this upload")
        if upload.is_finished or taking.exception() is None:
            await self._settle(upload)
        taking.result()

    async def delete(self, upload: Resumable) -> None:
        """Delete an upload, with the data of an unfinished one."""
        self._known.pop(upload.id, None)
        if not upload.is_finished:
            await upload.fail(UploadError(499, "the upload was deleted"))

    def left_seconds(self, upload: Resumable) -> float:
        """Return the time left for resuming it."""
        return max(upload.touched + self._seconds - time.monotonic(), 0)

    async def sweep(self) -> None:
        """Abandon expired uploads, and captures that waited only for them."""
        for each in [each for each in self._known.values() if each.taking is None and not self.left_seconds(each)]:
            was_finished = each.is_finished
            await self.delete(each)
            if not was_finished:
                log.info("an upload was not resumed in time", capture=each.capture_id, received_bytes=each.offset_bytes)
                await self._captures.delete_if_empty(each.capture_id)
        finished = [each.id for each in self._known.values() if each.is_finished]
        for id in finished[: max(len(finished) - MOST_FINISHED, 0)]:
            del self._known[id]

    def close(self) -> None:
        """Accept no more uploads, and abandon those that no request is sending."""
        self._is_closed = True
        for each in self._known.values():
            if each.taking is None and not each.has_ended:
                each.file.fail(_ENDS)

    async def stop(self) -> None:
        """Abandon all uploads; wait until none of them is being stored."""
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


def require_offset(upload: Resumable, offset: int) -> None:
    """Raise UploadError (409) unless the next part begins at this offset."""
    if offset != upload.offset_bytes:
        raise UploadError(409, f"The upload continues at byte {upload.offset_bytes:,}.")


_ENDS = UploadError(503, "the service is stopping: send the file again later")


def _stored(task: "asyncio.Task[Sequence[File]]", file: Arriving) -> None:
    file.abandon()
    # Its client may never ask for the result.
    if not task.cancelled():
        task.exception()


async def _at_most(upload: Resumable, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield a request's chunks up to the file's announced size."""
    left = upload.length_bytes - upload.offset_bytes
    async for chunk in chunks:
        if len(chunk) > left:
            raise UploadError(413, f"more than the {upload.length_bytes:,} bytes that were announced")
        left -= len(chunk)
        yield chunk
