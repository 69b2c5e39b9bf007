"""Sources that can be opened repeatedly, because details of a connection are read on demand."""

from __future__ import annotations

import hashlib
import os
import stat
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from tcpwin.errors import CaptureError, SourceError
from tcpwin.sources.positions import Growing, ReadAt, Reader, needs_open, reads_at

if TYPE_CHECKING:
    from tcpwin._engine import Selected, _Readable

Packets: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | IO[bytes] | Iterable[Any]"
"""Input of :func:`tcpwin.analyze`: a path, an address, several, an open file, its bytes, a dpkt reader, packets of
scapy or pyshark, a stopped `AsyncSniffer`, or pairs of seconds since the epoch and a packet's bytes."""

COPY_BYTES = 1 << 20
SEEN_BYTES, PIECES = 1 << 18, 16
"""Bytes of a file hashed to detect changes, and the number of samples; hashing takes about a millisecond."""


class Source(ABC):
    """Packets that the engine can read repeatedly."""

    name: str
    size_bytes: int | None = None
    facts: Sequence[Mapping[str, Any]] | None = None
    """Facts of the original captures, if the packets read are not the captured ones."""

    @abstractmethod
    def open(self) -> Sequence[str] | _Readable | Selected:
        """Return the engine's input: paths, an object with ``read``, or a selection of either."""

    def digests(self) -> Sequence[str]:
        """Return the SHA-256 of each captured file in hexadecimal; empty if the packets are not from files."""
        return ()


class PathSource(Source):
    """One file, or several that are read in time order."""

    def __init__(self, paths: Sequence[str | os.PathLike[str]]) -> None:
        if not paths:
            raise SourceError("no capture given")
        self._paths = [os.fspath(path) for path in paths]
        self.name = _readable(self._paths[0]) if len(paths) == 1 else f"{len(paths)} files"
        self._states: list[_State] | None = None
        sizes = []
        for path in self._paths:
            status = _status(path)
            if status is not None and stat.S_ISDIR(status.st_mode):
                raise CaptureError("is a folder, not a capture", _readable(path), 0)
            if status is not None and stat.S_ISREG(status.st_mode):
                sizes.append(status.st_size)
        self.size_bytes = sum(sizes) if len(sizes) == len(self._paths) else None

    def open(self) -> Sequence[str]:
        before = self._states
        if before is None:
            self._states = [_State.of(path) for path in self._paths]
        elif not all(state.is_still(path) for state, path in zip(before, self._paths, strict=True)):
            raise SourceError(f"{self.name} changed since it was analysed; analyse it again")
        return self._paths

    def digests(self) -> Sequence[str]:
        if self.size_bytes is None:
            return ()
        found = []
        for path in self.open():
            with open(path, "rb") as file:  # noqa: PTH123 - any path that the source accepts
                found.append(hashlib.file_digest(file, "sha256").hexdigest())
        return found


def _readable(path: str) -> str:
    """Return the path as valid text: undecodable bytes become U+FFFD."""
    return os.fsencode(path).decode("utf8", "replace")


def _status(path: str) -> os.stat_result | None:
    """Return the file's status, or None if inaccessible, so that opening it reports the error."""
    try:
        return Path(path).stat()
    except (OSError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class _State:
    """Identity of a file, to detect whether it is still the one that was read.

    Attributes:
        modified: size and modification time, which a copy with other bytes may share.
        identity: file id and change time, which no program can set; renaming and chmod change it.
        seen: a hash of its bytes, or of samples of a long file.
    """

    modified: tuple[int, int] | None
    identity: tuple[int, int, int] | None
    seen: int | None

    @classmethod
    def of(cls, path: str) -> _State:
        status = _status(path)
        if status is None:
            return cls(None, None, None)
        is_file = stat.S_ISREG(status.st_mode)
        return cls(_modified(status), _identity(status), _seen(path, status.st_size) if is_file else None)

    def is_still(self, path: str) -> bool:
        status = _status(path)
        if status is None or self.modified is None:
            return status is None and self.modified is None
        if _modified(status) == self.modified and (self.seen is None or _identity(status) == self.identity):
            return True
        if self.seen is None or status.st_size != self.modified[0] or _seen(path, status.st_size) != self.seen:
            return False
        # Only samples of a long file were compared; other bytes may differ.
        return status.st_size <= SEEN_BYTES or _modified(status) == self.modified


def _modified(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns


def _identity(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_dev, status.st_ino, status.st_ctime_ns


def _seen(path: str, size_bytes: int) -> int | None:
    """Hash at most `SEEN_BYTES` spread over a file; None if unreadable."""
    piece = SEEN_BYTES if size_bytes <= SEEN_BYTES else SEEN_BYTES // PIECES
    steps = 1 if size_bytes <= SEEN_BYTES else PIECES
    try:
        with Path(path).open("rb", buffering=0) as file:
            pieces = []
            for number in range(steps):
                file.seek((size_bytes - piece) * number // (steps - 1) if steps > 1 else 0)
                pieces.append(file.read(piece))
    except OSError:
        return None
    return hash(tuple(pieces))


class FileSource(Source):
    """An open binary file, which others may continue to read, or close if the system keeps it open.

    A non-seekable file is copied to an unnamed temporary file during the first reading.
    """

    def __init__(self, file: IO[bytes], *, name: str = "stream", keep: bool = True, owned: bool = False) -> None:
        """With `keep`, even a non-seekable file can be read again. An `owned` file is closed with the source."""
        self.name = name
        self._file = file
        self._keep = keep
        if owned:
            weakref.finalize(self, file.close)
        try:
            can_seek = _can_seek(file)
            self._start = file.tell() if can_seek else 0
        except ValueError:
            raise SourceError(f"{name} is closed: pass an open file") from None
        self._read_at: ReadAt | None = reads_at(file) if can_seek else None
        self._is_read = False

    def open(self) -> _Readable:
        if self._read_at is None:
            if not self._keep:
                if self._is_read:
                    raise SourceError(f"{self.name} can be read only once")
                self._is_read = True
                return self._file
            self._read_at = Growing(self._file, self.name)
        elif isinstance(self._read_at, Growing):
            self._read_at.check()
        elif needs_open(self._read_at) and getattr(self._file, "closed", False):
            raise SourceError(f"{self.name} was closed: keep it open, because details are read on demand")
        return Reader(self._read_at, self._start)

    def digests(self) -> Sequence[str]:
        if not self._keep:
            return ()
        file, digest = self.open(), hashlib.sha256()
        while data := file.read(COPY_BYTES):
            digest.update(data)
        return (digest.hexdigest(),)


def _can_seek(file: IO[bytes]) -> bool:
    seekable = getattr(file, "seekable", None)
    return bool(seekable and seekable())
