"""A source can be opened again and again: details of a connection are read when they are asked for."""

from __future__ import annotations

import os
import stat
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from tcpwin.errors import CaptureError, SourceError

if TYPE_CHECKING:
    from tcpwin._engine import _Readable

Packets: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | IO[bytes] | Iterable[Any]"
"""What :func:`tcpwin.analyze` takes: a path, several paths, an open file, scapy packets or a dpkt reader."""

CHUNK_BYTES = 1 << 20


class Source(ABC):
    """Packets that the engine can read, more than once."""

    name: str
    size_bytes: int | None = None
    facts: Sequence[Mapping[str, Any]] | None = None
    """Of the captures that the packets came from, where those read are no longer the ones captured."""

    @abstractmethod
    def open(self) -> Sequence[str] | _Readable:
        """What the engine reads: paths, or an object with ``read``."""


class PathSource(Source):
    """One file, or several that are read in time order."""

    def __init__(self, paths: Sequence[str | os.PathLike[str]]) -> None:
        if not paths:
            raise SourceError("no capture was named")
        self._paths = [os.fspath(path) for path in paths]
        self.name = _readable(self._paths[0]) if len(paths) == 1 else f"{len(paths)} files"
        self._stamps: list[tuple[int, int]] | None = None
        sizes = []
        for path in self._paths:
            status = _status(path)
            if status is not None and stat.S_ISDIR(status.st_mode):
                raise CaptureError("is a folder, not a capture", _readable(path), 0)
            if status is not None and stat.S_ISREG(status.st_mode):
                sizes.append(status.st_size)
        self.size_bytes = sum(sizes) if len(sizes) == len(self._paths) else None

    def open(self) -> Sequence[str]:
        stamps = [_stamp(path) for path in self._paths]
        if self._stamps is not None and stamps != self._stamps:
            raise SourceError(f"{self.name} changed since it was analysed; analyse it again")
        self._stamps = stamps
        return self._paths


def _readable(path: str) -> str:
    """The path as text that can be written anywhere: bytes of it that are no characters become U+FFFD."""
    return os.fsencode(path).decode("utf8", "replace")


def _status(path: str) -> os.stat_result | None:
    """None where the file cannot be looked at: opening it says why."""
    try:
        return Path(path).stat()
    except (OSError, ValueError):
        return None


def _stamp(path: str) -> tuple[int, int]:
    status = _status(path)
    return (-1, -1) if status is None else (status.st_size, status.st_mtime_ns)


class FileSource(Source):
    """An open binary file. One that cannot seek is copied to an unnamed temporary file while it is read first."""

    def __init__(self, file: IO[bytes], *, name: str = "stream", keep: bool = True, owned: bool = False) -> None:
        """With `keep`, a file that cannot seek can still be read again. An `owned` file is closed with the source."""
        self.name = name
        self._file = file
        self._keep = keep
        if owned:
            weakref.finalize(self, file.close)
        self._copy: IO[bytes] | None = None
        self._start = file.tell() if _can_seek(file) else None
        self._is_read = False

    def open(self) -> _Readable:
        if self._start is not None:
            self._file.seek(self._start)
            return self._file
        if self._copy is not None:
            self._copy.seek(0)
            return self._copy
        if self._is_read:
            raise SourceError(f"{self.name} can be read once only")
        self._is_read = True
        if not self._keep:
            return self._file
        import tempfile

        self._copy = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as this source
        weakref.finalize(self, self._copy.close)
        return _Tee(self._file, self._copy)


def _can_seek(file: IO[bytes]) -> bool:
    seekable = getattr(file, "seekable", None)
    return bool(seekable and seekable())


class _Tee:
    def __init__(self, file: IO[bytes], copy: IO[bytes]) -> None:
        self._file = file
        self._copy = copy

    def read(self, size: int, /) -> bytes:
        data = self._file.read(size)
        self._copy.write(data)
        return data
