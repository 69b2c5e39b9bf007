"""A snapshot file: open, decompress if needed, recognise, read.

In: a path, bytes, or an open binary file. Out: its samples, read again on each iteration (once from an open file).
Never holds the whole file in memory.
"""

from __future__ import annotations

import codecs
import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import IO, Any, Protocol

from tcpwin.errors import SnapshotError
from tcpwin.hosts.format import HEAD_LINES, Format, formats, recognise
from tcpwin.hosts.lines import Lines, Unknown
from tcpwin.hosts.quoting import find_quoting, unquoted
from tcpwin.hosts.times import Stamps, find_style

MAX_LINE_CHARACTERS = 1 << 20
"""Longer lines are read in pieces; no snapshot has any."""
STDIN = "-"
_HEAD_BYTES = 1 << 16
_GZIP = b"\x1f\x8b"
_OTHER_COMPRESSION = {b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4", b"\xfd7zX": "xz", b"BZh": "bzip2"}
# PowerShell writes UTF-16 with a BOM when redirected to a file; UTF-32's BOM begins like UTF-16's.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)


class SnapshotFile:
    """Samples of one file. Iterating reads it and fills `unknown` and `notes`.

    Args:
        source: a path (``-`` is standard input), the bytes of a file, or a binary file that is open for reading.
        name: its name in messages.
        format: name of the format; by default recognised from the first lines.
        page_size_bytes: page size of the host that it was taken on.
        zone: time zone of times without one.
        max_inflated_bytes: limit for decompressed data; None for no limit.

    Attributes:
        name: the file's name, or the given name.
        format: name of the format.
        unknown: unrecognised lines of the last reading.
        notes: sentences about assumptions and missing data in the last reading.

    Raises:
        SnapshotError: a folder, empty, binary, compressed by anything but gzip, or of unknown format; or, possibly
            after some samples, larger than `max_inflated_bytes`.
        OSError: the path cannot be read.
    """

    def __init__(
        self,
        source: str | Path | bytes | IO[bytes],
        *,
        name: str | None = None,
        format: str | None = None,
        page_size_bytes: int = 4096,
        zone: tzinfo = UTC,
        max_inflated_bytes: int | None = None,
    ) -> None:
        if source == STDIN:
            source = sys.stdin.buffer
            name = name or "standard input"
        self.name = name or _name_of(source)
        self.unknown = Unknown()
        self.notes: set[str] = set()
        if isinstance(source, str | Path) and Path(source).exists() and not Path(source).is_file():
            self._source: str | Path | bytes | _Once = _Once(self._open_pipe(Path(source)), self.name, is_owned=True)
        else:
            self._source = source if isinstance(source, str | Path | bytes) else _Once(source, self.name)
        self._page_size_bytes = page_size_bytes
        self._zone = zone
        self._max_inflated_bytes = max_inflated_bytes
        self._latest = self._find_latest()
        head, is_cut = self._read_head()
        self._encoding = _find_encoding(head)
        pasted = self._raw_head(head, is_cut)
        self._quoting = find_quoting(pasted)
        raw_lines = list(unquoted(pasted, self._quoting))
        self._style = find_style(raw_lines, is_cut=is_cut)
        self._format = self._find_format(format, raw_lines)
        self.format = self._format.name
        self.notes = set()

    @property
    def is_stream(self) -> bool:
        """Whether it can be read only once."""
        return isinstance(self._source, _Once)

    def __iter__(self) -> Iterator[Any]:
        self.notes = set()
        with self._open_bytes() as raw, _text(raw, self._encoding) as file:
            stamps = Stamps(zone=self._zone, latest=self._latest, style=self._style)
            lines = Lines(
                stamps.ahead(unquoted(_bounded(file), self._quoting)),
                stamps=stamps,
                page_size_bytes=self._page_size_bytes,
            )
            self.unknown = lines.unknown
            try:
                yield from self._format.read(lines)
            finally:
                self.notes |= stamps.notes

    def _find_format(self, wanted: str | None, raw_lines: list[str]) -> Format:
        if wanted is not None:
            if wanted not in formats():
                raise SnapshotError(
                    f"unknown snapshot format {wanted}; available: {', '.join(sorted(formats()))}", self.name
                )
            return formats()[wanted]
        stamps = Stamps(zone=self._zone, latest=self._latest, style=self._style)
        head = []
        for line in Lines(stamps.ahead(raw_lines), stamps=stamps):
            head.append(line)
            if len(head) == HEAD_LINES:
                break
        found = recognise(head)
        if found is None:
            raise SnapshotError(f"not a known snapshot format ({', '.join(sorted(formats()))})", self.name)
        return found

    def _open_pipe(self, path: Path) -> IO[bytes]:
        """Open a pipe or a device, such as a shell's ``<(ss -tmi)``, which can be read only once."""
        if path.is_dir():
            raise SnapshotError("a folder, not a file", self.name)
        return path.open("rb")

    def _find_latest(self) -> datetime | None:
        """Return when the file was written."""
        if isinstance(self._source, str | Path):
            return datetime.fromtimestamp(Path(self._source).stat().st_mtime, UTC)
        return None

    def _read_head(self) -> tuple[bytes, bool]:
        """Return the first bytes, and whether there are more."""
        with self._open_bytes() as raw:
            start = _read_up_to(raw, _HEAD_BYTES + 1)
        for magic, method in _OTHER_COMPRESSION.items():
            if start.startswith(magic):
                raise SnapshotError(f"compressed by {method}; only gzip is supported: decompress it first", self.name)
        if not start and self.notes:
            raise SnapshotError("compressed with gzip and damaged from the start", self.name)
        if not start:
            raise SnapshotError("empty", self.name)
        return start[:_HEAD_BYTES], len(start) > _HEAD_BYTES

    def _raw_head(self, head: bytes, is_cut: bool) -> list[str]:
        text = _text(io.BytesIO(head), self._encoding).read()
        if "\0" in text:
            raise SnapshotError("binary, not text: it contains zero bytes", self.name)
        if not text.strip() and not is_cut:
            raise SnapshotError("only blank lines", self.name)
        lines = list(_bounded(io.StringIO(text, newline="\n")))
        return lines[:-1] if is_cut and len(lines) > 1 else lines

    def _open_bytes(self) -> IO[bytes]:
        raw: IO[bytes]
        if isinstance(self._source, _Once):
            raw = self._source.open()
        elif isinstance(self._source, bytes):
            raw = io.BytesIO(self._source)
        else:
            raw = Path(self._source).open("rb")  # noqa: SIM115
        start = raw.read(2)
        whole: io.RawIOBase = _Joined(start, raw)
        if start == _GZIP:
            whole = _Gunzip(whole, self.notes, self._max_inflated_bytes, self.name)
        return io.BufferedReader(whole, 1 << 16)

    def __repr__(self) -> str:
        return f"<SnapshotFile {self.name}: {getattr(self, 'format', 'not recognised')}>"


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes | None: ...

    def close(self) -> None: ...


class _Joined(io.RawIOBase):
    """Bytes already read, followed by the rest of the file."""

    def __init__(self, start: bytes, file: _Readable) -> None:
        self._start = start
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._start[: len(buffer)]
        self._start = self._start[len(buffer) :]
        data = data or self._file.read(len(buffer)) or b""
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


class _Gunzip(io.RawIOBase):
    """Decompressed data: damage ends the file with a note; more than `max_bytes` is an error."""

    def __init__(self, file: io.RawIOBase, notes: set[str], max_bytes: int | None, name: str) -> None:
        self._file = file
        self._gzip = gzip.GzipFile(fileobj=io.BufferedReader(file, 1 << 16), mode="rb")
        self._notes = notes
        self._left_bytes = max_bytes
        self._too_long = SnapshotError(f"compressed, and unpacks to more than {max_bytes or 0:,} bytes", name)
        self._is_over = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._is_over:
            return 0
        try:
            # One byte beyond the limit distinguishes a file of exactly that length from a longer one.
            size = len(buffer) if self._left_bytes is None else min(len(buffer), self._left_bytes or 1)
            data = self._gzip.read1(size)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            self._is_over = True
            self._notes.add("the compressed data is truncated or damaged; only the part before the damage was read")
            return 0
        if self._left_bytes is not None and data:
            if self._left_bytes == 0:
                raise self._too_long
            self._left_bytes -= len(data)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._gzip.close()
        self._file.close()
        super().close()


class _Once:
    """An open file: its first bytes can be peeked at, the whole can be read once."""

    def __init__(self, file: IO[bytes], name: str, *, is_owned: bool = False) -> None:
        self._file = file
        self._name = name
        self._is_owned = is_owned
        self._start: bytes | None = None
        self._is_read = False

    def open(self) -> IO[bytes]:
        if self._start is None:
            if isinstance(self._file, io.TextIOBase):
                raise SnapshotError("opened as text: open the file in binary mode", self._name)
            self._start = _read_up_to(self._file, _HEAD_BYTES * 2)
            return io.BytesIO(self._start)
        if self._is_read:
            raise SnapshotError("a stream that was already read", self._name)
        self._is_read = True
        return io.BufferedReader(_Joined(self._start, _Kept(self._file)), 1 << 16)

    def __del__(self) -> None:
        if self._is_owned:
            self._file.close()


class _Kept:
    """A file owned by the caller: closing this leaves it open."""

    def __init__(self, file: IO[bytes]) -> None:
        self.read = file.read

    def close(self) -> None:
        """Do nothing."""


def _name_of(source: str | Path | bytes | IO[bytes]) -> str:
    if isinstance(source, bytes):
        return "text"
    return str(source if isinstance(source, str | Path) else getattr(source, "name", "stream"))


def _read_up_to(file: IO[bytes], size: int) -> bytes:
    """Read up to `size` bytes, which a pipe delivers in parts."""
    parts = []
    while size > 0 and (part := file.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _find_encoding(start: bytes) -> str:
    return next((encoding for mark, encoding in _MARKS if start.startswith(mark)), "utf-8")


def _text(raw: IO[bytes], encoding: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(raw, encoding=encoding, errors="tcpwin-latin-1", newline="\n")


def _as_latin_1(error: UnicodeError) -> tuple[str, int]:
    """Decode invalid UTF-8 as Latin-1, so that labels in other languages stay readable and nothing is lost."""
    if isinstance(error, UnicodeDecodeError):
        if error.encoding.startswith("utf-8") or error.encoding == "utf8":
            return error.object[error.start : error.end].decode("latin-1"), error.end
        return "\N{REPLACEMENT CHARACTER}", error.end
    raise error


codecs.register_error("tcpwin-latin-1", _as_latin_1)


def _bounded(file: IO[str]) -> Iterator[str]:
    while line := file.readline(MAX_LINE_CHARACTERS):
        yield line
