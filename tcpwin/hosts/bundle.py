"""A bundle: captures and snapshots of one or several hosts in a folder, a .zip or a .tar, also compressed by gzip.

In: its path. Out: its contents, by host; each member as a path or a SnapshotFile, unpacked on demand into a private
folder under a numeric name. Nothing is ever written to the path in a member's name.
"""

from __future__ import annotations

import gzip
import os
import re
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol

from tcpwin.errors import SnapshotError
from tcpwin.hosts.file import SnapshotFile
from tcpwin.hosts.format import formats
from tcpwin.hosts.zip_directory import zip_holds_more

MAX_BYTES = 8 << 30
MAX_MEMBERS = 10_000
MAX_RATIO = 200
"""Maximum compression ratio of an archive that unpacks to more than `_HARMLESS_BYTES`."""

_HARMLESS_BYTES = 64 << 20
_MAX_HEADER_BYTES = 16 << 20
_HEAD_BYTES = 1 << 16
_MAX_DEPTH = 32
_MAX_ENDINGS = 8
_CHUNK_BYTES = 1 << 20
_CAPTURES = {
    b"\xa1\xb2\xc3\xd4": "pcap",
    b"\xd4\xc3\xb2\xa1": "pcap",
    b"\xa1\xb2\x3c\x4d": "pcap",
    b"\x4d\x3c\xb2\xa1": "pcap",
    b"\xa1\xb2\xcd\x34": "pcap",
    b"\x34\xcd\xb2\xa1": "pcap",
    b"\x0a\x0d\x0d\x0a": "pcapng",
}
_GZIP = b"\x1f\x8b"
_FRAMES = {b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
_DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    gzip.BadGzipFile,
    struct.error,
    EOFError,
    LookupError,
    ValueError,
    OverflowError,
    NotImplementedError,
    RuntimeError,
)
_ENDINGS = frozenset(
    ("txt", "log", "out", "csv", "tsv", "json", "jsonl", "ndjson", "pcap", "pcapng", "cap", "dmp", "gz", "zst", "lz4")
)
_RING_ENDING = re.compile(r"(?:pcap|pcapng|cap|dmp)[0-9]{1,6}", re.ASCII | re.IGNORECASE)
"""Extensions of a ring's files as numbered by `tcpdump -C`."""
# Words in file names that describe the file or its time, not its host.
_WORDS = frozenset(
    (
        *("after", "before", "begin", "bpftrace", "bundle", "cap", "capture", "captures", "counters", "data", "dump"),
        *("dumps", "end", "funclatency", "global", "hist", "histograms", "host", "hosts", "info", "iperf", "iproute2"),
        *("log", "logs", "meta", "meminfo", "net", "netstat", "out", "output", "packets", "pcap", "pcapng", "pcaps"),
        *("proc", "samples", "settings", "snap", "snapshot", "snapshots", "snmp", "snmp6", "sockets", "sockstat6"),
        *("start", "stats", "sysctls", "table", "tcp", "tcpdump", "tcpwin", "tmi", "tmin", "trace", "traces", "txt"),
    )
)


@dataclass(frozen=True, slots=True)
class Member:
    """A file in a bundle.

    Attributes:
        number: its position in the bundle, from 0.
        name: its path in the bundle, for display only; unprintable characters become question marks.
        kind: capture, snapshot or unknown.
        format: pcap or pcapng (zstd or lz4 if not decompressed), or a snapshot format; None if unknown.
        label: the host according to its name or folder; "" if neither names one.
        size_bytes: size when unpacked from the bundle; a compressed member stays compressed.
        written: time of the last change; None if the bundle does not record it.
        reason: short reason why it is unknown; None otherwise.
    """

    number: int
    name: str
    kind: str
    format: str | None
    label: str
    size_bytes: int
    written: datetime | None
    reason: str | None = None


class Bundle:
    """Contents of a bundle. Closing it, or leaving its `with` block, removes its private folder.

    Attributes:
        name: the folder or archive.
        members: all files in order, including unknown ones.
        notes: sentences about missing data.
    """

    def __init__(self, archive: _Archive, *, name: str, max_bytes: int, max_members: int) -> None:
        self.name = name
        self.notes: set[str] = set()
        self._archive = archive
        self._max_bytes = max_bytes
        self._unpacked_bytes = 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._paths: dict[int, Path] = {}
        self._entries: list[_Entry] = []
        self.members = self._list(max_members)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        max_bytes: int = MAX_BYTES,
        max_members: int = MAX_MEMBERS,
        max_ratio: int = MAX_RATIO,
    ) -> Bundle:
        """List a bundle.

        Args:
            path: a folder, .zip, .tar or .tar.gz, recognised by content.
            max_bytes: limit of all unpacked bytes.
            max_members: limit of members, including folders.
            max_ratio: maximum compression ratio above 64 MiB.

        Raises:
            SnapshotError: the path is not a bundle, is damaged from its start, or exceeds a limit.
            OSError: it cannot be read.
        """
        path = Path(path)
        with _damage_is_an_error(str(path)):
            archive = _find_archive(path, max_bytes, max_members, max_ratio)
        try:
            return cls(archive, name=str(path), max_bytes=max_bytes, max_members=max_members)
        except BaseException:
            archive.close()
            raise

    @property
    def captures(self) -> tuple[Member, ...]:
        """Return the members that are captures."""
        return tuple(member for member in self.members if member.kind == "capture")

    @property
    def snapshots(self) -> tuple[Member, ...]:
        """Return the members that are snapshots in a known format."""
        return tuple(member for member in self.members if member.kind == "snapshot")

    @property
    def hosts(self) -> Mapping[str, tuple[Member, ...]]:
        """Return captures and snapshots by label, in alphabetical order; "" is first."""
        known = [member for member in self.members if member.kind != "unknown"]
        labels = sorted({member.label for member in known})
        return {label: tuple(member for member in known if member.label == label) for label in labels}

    def path(self, member: Member) -> Path:
        """Return a path at which the member can be read until the bundle is closed.

        Raises:
            SnapshotError: it cannot be unpacked, is damaged, or exceeds the limit.
        """
        if member.number not in self._paths:
            entry = self._entries[member.number]
            if entry.refusal is not None:
                raise SnapshotError(f"{member.name}: {entry.refusal}", self.name)
            self._paths[member.number] = entry.path or self._unpack(entry)
        return self._paths[member.number]

    def snapshot(self, member: Member, **options: Any) -> SnapshotFile:
        """Return a member's samples; options as for SnapshotFile. A compressed member's inflated size is limited."""
        harmless = _HARMLESS_BYTES // max(1, len(self.snapshots))
        limit = min(self._max_bytes, max(harmless, MAX_RATIO * member.size_bytes))
        own = {"name": member.name, "format": member.format, "max_inflated_bytes": limit}
        return SnapshotFile(self.path(member), **{**own, **options})

    def close(self) -> None:
        """Remove the unpacked files."""
        self._archive.close()
        self._paths.clear()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def __enter__(self) -> Bundle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _list(self, max_members: int) -> tuple[Member, ...]:
        found = []
        total_bytes = 0
        try:
            for count, entry in enumerate(self._archive.entries(), start=1):
                if count > max_members:
                    raise SnapshotError(f"more than {max_members:,} members", self.name)
                total_bytes += 0 if entry.path else entry.size_bytes
                if total_bytes > self._max_bytes:
                    raise SnapshotError(f"unpacks to more than {self._max_bytes:,} bytes", self.name)
                if not entry.is_folder and not _is_hidden(entry.name):
                    found.append(self._describe(entry))
        except _DAMAGE as error:
            if not found:
                raise SnapshotError(f"damaged: {error}", self.name) from error
            self.notes.add("the archive is truncated or damaged; only the part before the damage was read")
        return tuple(_labelled(found))

    def _describe(self, entry: _Entry) -> Member:
        number = len(self._entries)
        kind, found, reason = "unknown", None, entry.refusal
        if reason is None:
            try:
                with self._archive.open(entry) as file:
                    head = file.read(_HEAD_BYTES)
                kind, found, reason = _classify(head, entry.name)
            except (*_DAMAGE, OSError) as error:
                reason = f"cannot be read: {error}"
                entry = replace(entry, refusal=reason)
        self._entries.append(entry)
        name = "".join(letter if letter.isprintable() else "?" for letter in entry.name)
        return Member(number, name, kind, found, "", entry.size_bytes, entry.written, reason)

    def _unpack(self, entry: _Entry) -> Path:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="tcpwin-")
        path = Path(self._folder.name) / f"{len(self._paths):05}"
        try:
            with _damage_is_an_error(self.name), self._archive.open(entry) as file, path.open("xb") as out:
                while part := file.read(_CHUNK_BYTES):
                    self._unpacked_bytes += len(part)
                    if self._unpacked_bytes > self._max_bytes:
                        raise SnapshotError(f"unpacks to more than {self._max_bytes:,} bytes", self.name)
                    out.write(part)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        if entry.written is not None:
            os.utime(path, (entry.written.timestamp(), entry.written.timestamp()))
        return path


@dataclass(frozen=True, slots=True)
class _Entry:
    """Metadata of a member in a folder or archive, before its content is read."""

    name: str
    size_bytes: int
    written: datetime | None
    handle: Any
    is_folder: bool = False
    refusal: str | None = None
    path: Path | None = None


class _Archive(Protocol):
    def entries(self) -> Iterator[_Entry]: ...

    def open(self, entry: _Entry) -> IO[bytes]: ...

    def close(self) -> None: ...


class _Folder:
    """The files of a folder and its subfolders."""

    def __init__(self, path: Path, max_members: int) -> None:
        self._path = path
        self._max_members = max_members

    def entries(self) -> Iterator[_Entry]:
        waiting = [self._path]
        while waiting:
            folder = waiting.pop()
            with os.scandir(folder) as found:
                inside = sorted(islice(found, self._max_members + 1), key=lambda entry: entry.name)
            waiting += [Path(entry.path) for entry in reversed(inside) if entry.is_dir(follow_symlinks=False)]
            yield from (self._entry(entry) for entry in inside)

    def _entry(self, entry: os.DirEntry[str]) -> _Entry:
        status = entry.stat(follow_symlinks=False)
        path = Path(entry.path)
        refusal = None if stat.S_ISREG(status.st_mode) else "a link, or a special file"
        return _Entry(
            name=path.relative_to(self._path).as_posix(),
            size_bytes=status.st_size,
            written=datetime.fromtimestamp(status.st_mtime, UTC),
            handle=path,
            is_folder=stat.S_ISDIR(status.st_mode),
            refusal=refusal,
            path=path,
        )

    def open(self, entry: _Entry) -> IO[bytes]:
        path: Path = entry.handle
        return path.open("rb")

    def close(self) -> None:
        """Do nothing."""


class _Zip:
    """The members of a .zip."""

    def __init__(self, path: Path, max_members: int, max_ratio: int) -> None:
        # zipfile creates an object for every entry before the first can be inspected.
        if zip_holds_more(path, max_members):
            raise SnapshotError(f"more than {max_members:,} members", str(path))
        self._archive_bytes = path.stat().st_size
        self._max_ratio = max_ratio
        self._name = str(path)
        self._zip = zipfile.ZipFile(path)

    def entries(self) -> Iterator[_Entry]:
        total_bytes = 0
        for info in self._zip.infolist():
            total_bytes += info.file_size
            if total_bytes > max(_HARMLESS_BYTES, self._max_ratio * self._archive_bytes):
                raise SnapshotError(f"unpacks to more than {self._max_ratio:,} times its size", self._name)
            mode = info.external_attr >> 16
            refusal = _refuse_name(info.filename)
            if info.flag_bits & 1:
                refusal = "encrypted"
            elif stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                refusal = "a link, or a special file"
            elif info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                refusal = "compressed by an unsupported method"
            yield _Entry(info.filename, info.file_size, _zip_time(info), info, info.filename.endswith("/"), refusal)

    def open(self, entry: _Entry) -> IO[bytes]:
        return self._zip.open(entry.handle)

    def close(self) -> None:
        self._zip.close()


class _Tar:
    """The members of a .tar."""

    def __init__(self, file: _Guarded) -> None:
        self._file = file
        self._tar = tarfile.open(fileobj=file, mode="r:")  # type: ignore[call-overload]  # noqa: SIM115

    def entries(self) -> Iterator[_Entry]:
        for info in self._tar:
            refusal = _refuse_name(info.name)
            if not info.isdir() and (not info.isreg() or info.issparse()):
                refusal = "a link, or a special file"
            yield _Entry(info.name, info.size if info.isreg() else 0, _tar_time(info), info, info.isdir(), refusal)
        self._check_end()

    def _check_end(self) -> None:
        """Refuse an archive with trailing data that is not a header, which tarfile would silently accept as the end."""
        self._file.seek(self._tar.offset)
        rest = self._file.read(tarfile.BLOCKSIZE)
        if 0 < len(rest) < tarfile.BLOCKSIZE:
            raise tarfile.ReadError("ends inside a header")
        if any(rest):
            raise tarfile.ReadError("a header is damaged")

    def open(self, entry: _Entry) -> IO[bytes]:
        file: IO[bytes] | None = self._tar.extractfile(entry.handle)
        if file is None:
            raise tarfile.TarError("no file")
        return file

    def close(self) -> None:
        self._tar.close()
        self._file.close()


class _Guarded:
    """A file that enforces the read limits and rejects headers large enough to exhaust memory."""

    def __init__(self, file: IO[bytes], raw: IO[bytes], *, max_bytes: int, name: str) -> None:
        self._file = file
        self._raw = raw
        self._max_bytes = max_bytes
        self._name = name

    def read(self, size: int = -1) -> bytes:
        if size > _MAX_HEADER_BYTES or size < 0:
            raise tarfile.TarError(f"a header of {size:,} bytes")
        self._check(self._file.tell() + size)
        return self._file.read(size)

    def seek(self, position: int, whence: int = 0) -> int:
        if whence == 0:
            self._check(position)
        return self._file.seek(position, whence)

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        self._file.close()
        self._raw.close()

    def _check(self, position: int) -> None:
        if position > self._max_bytes:
            raise SnapshotError(f"unpacks to more than {self._max_bytes:,} bytes", self._name)


def _find_archive(path: Path, max_bytes: int, max_members: int, max_ratio: int) -> _Archive:
    if path.is_dir():
        return _Folder(path, max_members)
    raw = path.open("rb")
    try:
        start = raw.read(512)
        raw.seek(0)
        if start[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
            raw.close()
            return _Zip(path, max_members, max_ratio)
        if start[:4] in _FRAMES:
            raise SnapshotError(f"compressed by {_FRAMES[start[:4]]}; only gzip is read", str(path))
        overhead = 1 << 20  # Headers and the padding at the end.
        limit = max_bytes + overhead
        file: IO[bytes] = raw
        if start[:2] == _GZIP:
            limit = min(limit, max(_HARMLESS_BYTES, max_ratio * path.stat().st_size))
            file = gzip.GzipFile(fileobj=raw, mode="rb")  # type: ignore[assignment]
        return _Tar(_Guarded(file, raw, max_bytes=limit, name=str(path)))
    except tarfile.ReadError as error:
        raw.close()
        raise SnapshotError("not a bundle: expected a folder, .zip, .tar or .tar.gz", str(path)) from error
    except BaseException:
        raw.close()
        raise


@contextmanager
def _damage_is_an_error(name: str) -> Iterator[None]:
    try:
        yield
    except _DAMAGE as error:
        raise SnapshotError(f"damaged: {error}", name) from error


def _zip_time(info: zipfile.ZipInfo) -> datetime | None:
    """Return the member's time, by the packer's clock in an unknown zone; a file may contain month 0."""
    year, month, day, hour, minute, second = info.date_time
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None


def _tar_time(info: tarfile.TarInfo) -> datetime | None:
    try:
        return datetime.fromtimestamp(info.mtime, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _refuse_name(name: str) -> str | None:
    parts = name.replace("\\", "/").split("/")
    if ".." in parts or parts[0] == "" or re.match(r"[A-Za-z]:", name):
        return "its name leads outside the bundle"
    return None


def _is_hidden(name: str) -> bool:
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    return any(part.startswith(".") or part == "__MACOSX" for part in parts)


def _classify(head: bytes, name: str) -> tuple[str, str | None, str | None]:
    """Return the kind, the format, and the reason if unknown."""
    if head[:4] in _FRAMES:
        method = _FRAMES[head[:4]]
        is_capture = bool(re.search(r"\.(?:pcap|pcapng|cap)\.", name.lower()))
        return ("capture", method, None) if is_capture else ("unknown", None, f"compressed by {method}")
    if head[:2] == _GZIP:
        try:
            head = zlib.decompressobj(31).decompress(head, _HEAD_BYTES)
        except zlib.error:
            return "unknown", None, "compressed by gzip, and damaged"
    if head[:4] in _CAPTURES:
        return "capture", _CAPTURES[head[:4]], None
    whole = head[: head.rfind(b"\n") + 1] if len(head) == _HEAD_BYTES else head
    try:
        return "snapshot", SnapshotFile(whole or head, name=name).format, None
    except SnapshotError as error:
        return "unknown", None, error.message


def _labelled(members: Iterable[Member]) -> list[Member]:
    members = list(members)
    paths = [[part for part in member.name.split("/")[-_MAX_DEPTH:] if part not in ("", ".")] for member in members]
    common = ""
    while paths and all(len(path) > 1 for path in paths) and len({path[0] for path in paths}) == 1:
        common = paths[0][0]
        paths = [path[1:] for path in paths]
    labels = [_label(path) for path in paths]
    if not any(labels):
        labels = [_own_words(common)] * len(labels)
    return [replace(member, label=label) for member, label in zip(members, labels, strict=True)]


def _label(path: list[str]) -> str:
    """Return a file's host: the first folder not named after a kind of file, else the remaining words of its name."""
    for folder in path[:-1]:
        if words := _own_words(folder):
            return words
    return _own_words(_without_endings(path[-1])) if path else ""


def label_of(name: str) -> str:
    """Return the host that a file's name contains, or ""."""
    return _own_words(_without_endings(Path(name).name))


def _without_endings(name: str) -> str:
    for _ in range(_MAX_ENDINGS):
        rest, dot, ending = name.rpartition(".")
        is_rotation = ending.isdigit() and len(ending) <= 3 and rest.rpartition(".")[2].lower() in _ENDINGS
        if not dot or not (ending.lower() in _ENDINGS or is_rotation or _RING_ENDING.fullmatch(ending)):
            break
        name = rest
    return name


def _own_words(name: str) -> str:
    """Return a name without the words that describe the kind of file."""
    parts = re.split(r"([_\-. ]+)", name)
    words, breaks = parts[::2], [*parts[1::2], ""]
    is_format = {*formats(), *(part for known in formats() for part in known.split("_"))}
    kept = [
        (word, after)
        for word, after in zip(words, breaks, strict=True)
        if word and word.lower() not in _WORDS and word.lower() not in is_format
    ]
    words_kept = "".join(word + after for word, after in kept).rstrip("_-. ")
    # A date or sequence number does not name a host; an address has dots.
    return "" if re.fullmatch(r"[\d_T-]*", words_kept) else words_kept
