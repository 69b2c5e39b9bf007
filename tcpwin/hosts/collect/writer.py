"""Samples as `tcpwin/snap/1` files: JSON lines, whole lines only, rotated and bounded.

In: the data of each sample. Out: FILE, and FILE.1, FILE.2 … with older samples. Each file can be read alone: it begins
with a start record and a full sample.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from tcpwin.errors import OutputError
from tcpwin.hosts.collect.sockets import Sockets

SCHEMA = "tcpwin/snap/1"
SOCKETS_A_LINE = 400
GONE_A_LINE = 20_000
"""Keeps a line below the length that readers accept."""

_Item = TypeVar("_Item")

_encode = json.JSONEncoder(check_circular=False, separators=(",", ":")).encode


def sample_lines(head: dict[str, Any], sockets: Sockets) -> list[bytes]:
    """Return the lines of a sample: `head` and the sockets, in as many parts as needed."""
    whole, changes = _pieces(sockets.whole, SOCKETS_A_LINE), _pieces(sockets.changes, SOCKETS_A_LINE)
    gone = _pieces(sockets.gone, GONE_A_LINE)
    parts = max(1, len(whole), len(changes), len(gone))
    lines = []
    for part in range(parts):
        record = {"type": "more", "time_ns": head["time_ns"]} if part else {**head, "parts": parts}
        if part < len(whole):
            record["sockets"] = whole[part]
        if part < len(gone):
            record["gone"] = gone[part]
        text = _encode(record)
        if part < len(changes):
            text = f'{text[:-1]},"changes":[{",".join(changes[part])}]}}'
        lines.append(text.encode() + b"\n")
    return lines


def _pieces(items: list[_Item], size: int) -> list[list[_Item]]:
    return [items[at : at + size] for at in range(0, len(items), size)]


class Writer:
    """Writes records to a file that must not exist yet.

    Attributes:
        files: number started.
        written_bytes: total of all files.

    Raises:
        OutputError: the file exists, or cannot be written.
    """

    def __init__(self, path: Path, *, max_bytes: int, keep: int) -> None:
        self.path = path
        self.files = 0
        self.written_bytes = 0
        self._max_bytes = max_bytes
        self._keep = keep
        self._size_bytes = 0
        self._file = -1

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self, start: dict[str, Any]) -> None:
        """Begin the first file, or the next one, with its start record."""
        if self._file >= 0:
            self.close()
            self._move_on()
        else:
            self._refuse_to_overwrite()
        try:
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except FileExistsError:
            raise OutputError(f"{self.path} already exists; choose another file") from None
        except OSError as error:
            raise OutputError(f"{self.path}: {error.strerror}") from None
        self.files += 1
        self._size_bytes = 0
        try:
            self.write([_line(start)])
        except OutputError:
            self.discard()
            raise

    def is_full(self, lines: list[bytes]) -> bool:
        """Whether these lines need a new file."""
        return self._size_bytes + sum(map(len, lines)) > self._max_bytes

    def write(self, lines: list[bytes]) -> None:
        """Append whole lines; they survive the end of the process, and a full disk never truncates a line."""
        data = b"".join(lines)
        try:
            at = 0
            while at < len(data):
                at += os.write(self._file, data[at:] if at else data)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._file, self._size_bytes)
            raise OutputError(f"{self.path}: {error.strerror}") from None
        self._size_bytes += len(data)
        self.written_bytes += len(data)

    def end(self, record: dict[str, Any]) -> None:
        """Write the last record."""
        self.write([_line(record)])

    def discard(self) -> None:
        """Delete the file."""
        self.close()
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def size(self) -> tuple[int, int]:
        """Return the number of existing files and their total size."""
        return size_of_files(self._names())

    def _names(self) -> list[Path]:
        return [self.path, *(Path(f"{self.path}.{number}") for number in range(1, self._keep))]

    def _refuse_to_overwrite(self) -> None:
        for path in self._names():
            if path.exists():
                raise OutputError(f"{path} already exists; choose another file")

    def _move_on(self) -> None:
        names = self._names()
        try:
            if self._keep == 1:
                self.path.unlink()
            for older, newer in zip(reversed(names), reversed(names[:-1]), strict=False):
                if newer.exists():
                    newer.replace(older)
        except OSError as error:
            raise OutputError(f"{self.path}: {error.strerror}") from None


def size_of_files(paths: Iterable[Path]) -> tuple[int, int]:
    """Return how many of these files exist, and their total size."""
    count = total_bytes = 0
    for path in paths:
        with suppress(OSError):
            total_bytes += path.stat().st_size
            count += 1
    return count, total_bytes


def _line(record: dict[str, Any]) -> bytes:
    return _encode(record).encode() + b"\n"
