"""A snapshot file: opened, decompressed where it is compressed, recognised, read.

In: a path or bytes. Out: its samples, read anew each time they are asked for. Never holds the file in memory.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from tcpwin.errors import SnapshotError
from tcpwin.snapshots._format import HEAD_LINES, Format, formats, recognise
from tcpwin.snapshots._lines import Lines, Unknown
from tcpwin.snapshots._times import Stamps

MAX_LINE_CHARACTERS = 1 << 20
"""A longer line is read in pieces: none of a snapshot is."""
_HEAD_BYTES = 1 << 16


class SnapshotFile:
    """Samples of one file. Iterating reads it; `unknown` then says which lines were not understood.

    Attributes:
        name: of the file, or what was given instead of one.
        format: which it is, by name.
    """

    def __init__(
        self,
        source: str | Path | bytes,
        *,
        name: str | None = None,
        format: str | None = None,
        page_size_bytes: int = 4096,
    ) -> None:
        self._source = source
        self._page_size_bytes = page_size_bytes
        self.name = name or ("text" if isinstance(source, bytes) else str(source))
        self.unknown = Unknown()
        self._format = self._find_format(format)
        self.format = self._format.name

    def __iter__(self) -> Iterator[Any]:
        with self._open() as file:
            lines = Lines(_bounded(file), stamps=Stamps(), page_size_bytes=self._page_size_bytes)
            self.unknown = lines.unknown
            yield from self._format.read(lines)

    def _find_format(self, wanted: str | None) -> Format:
        head = self._head()
        if wanted is not None:
            if wanted not in formats():
                raise SnapshotError(f"there is no snapshot format {wanted}: {', '.join(sorted(formats()))}", self.name)
            return formats()[wanted]
        found = recognise(head)
        if found is None:
            raise SnapshotError(f"none of the snapshot formats known ({', '.join(sorted(formats()))})", self.name)
        return found

    def _head(self) -> list[str]:
        with self._open_bytes() as file:
            start = file.read(_HEAD_BYTES)
        if not start:
            raise SnapshotError("empty", self.name)
        if b"\0" in start:
            raise SnapshotError(f"binary, not text (at byte {start.index(0)})", self.name)
        text = io.StringIO(start.decode("utf-8", "replace"))
        head = []
        for line in Lines(_bounded(text), stamps=Stamps()):
            head.append(line)
            if len(head) == HEAD_LINES:
                break
        return head

    def _open(self) -> IO[str]:
        return io.TextIOWrapper(self._open_bytes(), encoding="utf-8", errors="replace", newline="\n")

    def _open_bytes(self) -> IO[bytes]:
        raw: IO[bytes]
        raw = io.BytesIO(self._source) if isinstance(self._source, bytes) else Path(self._source).open("rb")  # noqa: SIM115
        start = raw.read(2)
        raw.seek(0)
        return gzip.open(raw, "rb") if start == b"\x1f\x8b" else raw  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"<SnapshotFile {self.name}: {self.format}>"


def _bounded(file: IO[str]) -> Iterator[str]:
    while line := file.readline(MAX_LINE_CHARACTERS):
        yield line
