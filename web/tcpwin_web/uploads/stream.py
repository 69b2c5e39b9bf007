"""A binary file for a thread to read, fed from the event loop as chunks arrive; neither blocks for long.

Holds at most a few chunks: a slow reader slows the sender.
"""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator

WAITING_CHUNKS = 16


class UploadError(Exception):
    """Reason why an upload is refused, with its HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(status, message)
        self.status = status
        self.message = message

    def __str__(self) -> str:
        return self.message


class Arriving:
    """A file that is still arriving. `feed` runs in the event loop, `read` in a thread."""

    def __init__(self, *, max_bytes: int) -> None:
        self._chunks: deque[bytes | Exception] = deque()
        self._changed = threading.Condition()
        self._loop = asyncio.get_running_loop()
        self._room = asyncio.Event()
        self._max_bytes = max_bytes
        self._rest = b""
        self._ended = False
        self._abandoned = False
        self.received_bytes = 0

    async def feed(self, chunks: AsyncIterator[bytes]) -> None:
        """Feed all chunks; errors are raised here and in the reader."""
        try:
            await self.take(chunks)
        except BaseException as error:
            self.fail(error if isinstance(error, Exception) else UploadError(499, "the upload was interrupted"))
            raise
        self.end()

    async def take(self, chunks: AsyncIterator[bytes]) -> None:
        """Feed some chunks, more may follow; if the connection breaks off, `received_bytes` have arrived."""
        async for chunk in chunks:
            if self.received_bytes + len(chunk) > self._max_bytes:
                raise UploadError(413, f"a file may have {self._max_bytes:,} bytes at most")
            if chunk:
                await self._await_room()
                self._put(bytes(chunk))
                self.received_bytes += len(chunk)

    def end(self) -> None:
        """Mark the end of the file."""
        self._put(b"")

    def fail(self, error: Exception) -> None:
        """End the file early; the reader raises this error."""
        self._put(error)

    async def _await_room(self) -> None:
        while len(self._chunks) >= WAITING_CHUNKS and not self._abandoned:
            self._room.clear()
            await self._room.wait()

    def _put(self, item: bytes | Exception) -> None:
        with self._changed:
            if not self._abandoned:
                self._chunks.append(item)
                self._changed.notify()

    def abandon(self) -> None:
        """Stop reading: later chunks are dropped."""
        self._abandoned = True
        self._room.set()

    def read(self, size: int = -1, /) -> bytes:
        """Wait for bytes; return `size` of them or fewer, empty at the end."""
        if not self._rest and not self._ended:
            with self._changed:
                self._changed.wait_for(lambda: self._chunks)
                was_full = len(self._chunks) >= WAITING_CHUNKS
                item = self._chunks.popleft()
            if was_full:
                self._loop.call_soon_threadsafe(self._room.set)
            if isinstance(item, Exception):
                self._ended = True
                raise item
            self._rest, self._ended = item, not item
        if size < 0:
            size = len(self._rest)
        data, self._rest = self._rest[:size], self._rest[size:]
        return data


class Peeked:
    """A file whose first bytes have been read already."""

    def __init__(self, file: Arriving, size: int) -> None:
        self._file = file
        head = b""
        while len(head) < size and (more := file.read(size - len(head))):
            head += more
        self.head = self._rest = head

    def read(self, size: int = -1, /) -> bytes:
        """Return `size` bytes or fewer; empty at the end."""
        if not self._rest:
            return self._file.read(size)
        if size < 0:
            size = len(self._rest)
        data, self._rest = self._rest[:size], self._rest[size:]
        return data
