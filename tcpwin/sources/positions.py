"""Let several readers read an open file concurrently, each from its own position.

In: an open binary file. Out: readers whose positions no other thread, forked process or owner of the file can move.
"""

from __future__ import annotations

import io
import os
import threading
import weakref
from typing import IO, Any, Protocol

from tcpwin.errors import SourceError


class ReadAt(Protocol):
    """Reads up to `size` bytes from a position; nothing at the end of the file."""

    def __call__(self, place: int, size: int, /) -> bytes: ...


class Reader:
    """A file object for the engine that reads from its own position, whatever others do."""

    def __init__(self, read_at: ReadAt, place: int) -> None:
        self._read_at = read_at
        self._place = place

    def read(self, size: int, /) -> bytes:
        data = self._read_at(self._place, size)
        self._place += len(data)
        return data


def reads_at(file: IO[bytes]) -> ReadAt:
    """Return a function that reads a seekable file at any position."""
    descriptor = _descriptor(file)
    if descriptor is not None:
        return _Own(descriptor)
    if isinstance(file, io.BytesIO):
        return lambda place, size: bytes(file.getbuffer()[place : place + size])
    return _Seeking(file)


def needs_open(read_at: ReadAt) -> bool:
    """Whether the given file must stay open."""
    return not isinstance(read_at, _Own | Growing)


class _Own:
    """Reads from a duplicate descriptor, which stays valid when the file is closed."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = os.dup(descriptor)
        weakref.finalize(self, os.close, self._descriptor)

    def __call__(self, place: int, size: int, /) -> bytes:
        return os.pread(self._descriptor, size, place)


def _descriptor(file: Any) -> int | None:
    """Return the descriptor of a plain file; other file objects may contain different bytes than their descriptor."""
    # `tempfile` wraps its files.
    file = getattr(file, "file", file) if type(file).__module__ == "tempfile" else file
    if isinstance(file, io.BufferedRandom | io.BufferedWriter):
        file.flush()
    raw = getattr(file, "raw", file)
    # Windows reads only at a descriptor's position, which its duplicates share.
    return raw.fileno() if isinstance(raw, io.FileIO) and hasattr(os, "pread") else None


class _Seeking:
    """One reader at a time, each from its own position."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.lock = threading.Lock()
        _seeking.add(self)

    def __call__(self, place: int, size: int, /) -> bytes:
        with self.lock:
            if self._file.tell() != place:
                self._file.seek(place)
            return self._file.read(size)


class _Copy:
    """A private temporary file, read and written at any position."""

    def __init__(self, file: IO[bytes]) -> None:
        self._descriptor = file.fileno()
        self._lock = threading.Lock()

    def read(self, place: int, size: int) -> bytes:
        if hasattr(os, "pread"):
            return os.pread(self._descriptor, size, place)
        with self._lock:
            os.lseek(self._descriptor, place, os.SEEK_SET)
            return os.read(self._descriptor, size)

    def write(self, place: int, data: bytes) -> int:
        if hasattr(os, "pwrite"):
            return os.pwrite(self._descriptor, data, place)
        with self._lock:
            os.lseek(self._descriptor, place, os.SEEK_SET)
            return os.write(self._descriptor, data)


class Growing:
    """A non-seekable file: data already read is kept in another file."""

    def __init__(self, file: Any, name: str) -> None:
        import tempfile

        copy = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as this
        weakref.finalize(self, copy.close)
        self._file = file
        self._copy = _Copy(copy)
        self._name = name
        self._kept_bytes = 0
        self._is_whole = False
        self._process = os.getpid()
        self._lock = threading.Lock()

    def __call__(self, place: int, size: int, /) -> bytes:
        if place >= self._kept_bytes and not self._is_whole:
            with self._lock:
                while place >= self._kept_bytes and not self._is_whole:
                    self._keep(self._file.read(max(size, 1)))
        return self._copy.read(place, size)

    def check(self) -> None:
        """Refuse to continue if another process does: each would get part of the rest.

        Raises:
            SourceError: another process began to read it and has not finished.
        """
        if not self._is_whole and os.getpid() != self._process:
            raise SourceError(f"{self._name} can only be read further by the process that began reading it")

    def _keep(self, data: bytes) -> None:
        self._is_whole = not data
        while data:
            written = self._copy.write(self._kept_bytes, data)
            self._kept_bytes += written
            data = data[written:]


_seeking: weakref.WeakSet[_Seeking] = weakref.WeakSet()
_held: list[_Seeking] = []


def _hold() -> None:
    """Finish all reads before the process forks, because a lock would stay held in the child."""
    for each in list(_seeking):
        each.lock.acquire()
        _held.append(each)


def _let_go() -> None:
    while _held:
        _held.pop().lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_let_go, after_in_child=_let_go)
