"""Store an upload as files: packet headers, texts of snapshots, or both from a bundle.

If payloads are cut, they never reach the disk, except a bundle's while it is unpacked in a private folder.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import PurePosixPath
from typing import IO, Any, cast

from tcpwin.errors import CaptureError, SnapshotError
from tcpwin.hosts import Bundle, Member, SnapshotFile, captures_of, not_read
from tcpwin.sources import write_headers
from tcpwin_web.ledger import Share
from tcpwin_web.settings import Settings
from tcpwin_web.storage import DataFolder
from tcpwin_web.storage.files import Incoming
from tcpwin_web.uploads.kinds import HEAD_BYTES, Kind, detect_kind
from tcpwin_web.uploads.stream import Arriving, Peeked, UploadError

MAX_NAME = 255
MAX_RATIO = 1000
"""Maximum ratio of stored to received bytes, for captures that store more than `HARMLESS_BYTES`."""
HARMLESS_BYTES = 64 << 20
COPY_BYTES = 1 << 20


@dataclass(frozen=True)
class Received:
    """One stored file; its attributes are those of its row."""

    name: str
    label: str
    kind: str
    sha256: str
    size_bytes: int
    packets_cut: int | None = None
    facts: dict[str, Any] | None = None
    part: str = ""
    notes: list[str] | None = None


def show_name(name: str) -> str:
    """Return a file's name for display: its last part, without unprintable characters. It never becomes a path."""
    return _printable(name.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1])[:MAX_NAME] or "unnamed"


def text_name(name: str) -> str:
    """Return a file's name as text, replacing invalid UTF-8."""
    return os.fsencode(name).decode("utf8", "replace")


def _printable(name: str) -> str:
    shown = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in name)
    return shown.strip()


def receive(
    file: Arriving,
    name: str,
    kind: Kind | None,
    incoming: Incoming,
    data: DataFolder,
    settings: Settings,
    share: Share,
) -> list[Received]:
    """Store an upload as it arrives. Runs in a thread.

    Args:
        kind: the kind given by the sender; by default detected from the content.
        incoming: the folder for arriving files; lists the stored files afterwards, even after a failure.

    Raises:
        UploadError: it cannot be accepted.
        OSError: the disk is full or failed.
    """
    name = show_name(name)
    peeked = Peeked(file, HEAD_BYTES)
    if not peeked.head:
        raise UploadError(422, f"{name}: an empty file")
    taking = _Taking(incoming, data, settings, share)
    with _in_words(name):
        match kind or detect_kind(peeked.head, name):
            case "bundle":
                return list(taking.bundle(peeked, name))
            case "snapshot":
                return [taking.snapshot(peeked, name)]
            case _:
                return [taking.capture(peeked, name)]


@dataclass(frozen=True)
class _Taking:
    """Destination and limits of an upload."""

    incoming: Incoming
    data: DataFolder
    settings: Settings
    share: Share
    taken: list[tuple[int, int]] = field(default_factory=list)
    """Bytes stored and bytes read of each of its captures so far: limits apply to their sum."""

    def capture(self, file: Any, name: str, label: str = "", part: str = "") -> Received:
        out = self.incoming.path / "headers"
        settings = self.settings
        most = settings.max_unpacked_bytes
        left = max(most - sum(stored for stored, _ in self.taken), 1)
        read = _Counted(file, self._check_share)
        try:
            headers = write_headers(cast(IO[bytes], read), out, name=name, whole=settings.keep_payloads, max_bytes=left)
        finally:
            # To the engine, a refused upload looks like a damaged file, or like no capture at all.
            if read.refusal is not None:
                raise read.refusal
        for warning in headers.facts["warnings"]:
            if warning["kind"] == "read_failed" and left < most:
                raise UploadError(413, f"{name}: with the files before it, it unpacks to more than {most:,} bytes")
            if warning["kind"] == "read_failed":
                raise UploadError(413, f"{name}: {warning['message']}")
        # Reports show the digest of the whole file, including any bytes after its packets.
        while read.read(COPY_BYTES):
            pass
        facts = {**headers.facts, "sha256": read.digest.hexdigest()}
        size_bytes = out.stat().st_size
        self.taken.append((size_bytes, read.count))
        kept_bytes, read_bytes = (sum(sizes) for sizes in zip(*self.taken, strict=True))
        if kept_bytes > max(HARMLESS_BYTES, MAX_RATIO * read_bytes):
            raise UploadError(413, f"{name}: unpacks to more than {MAX_RATIO:,} times its size")
        self.data.keep(out, headers.sha256, self.incoming)
        return Received(name, label, "capture", headers.sha256, size_bytes, headers.packets_cut, facts, part)

    def snapshot(self, file: Any, name: str, label: str = "", *, written: datetime | None = None) -> Received:
        out, file = self.incoming.path / "snapshot", _Counted(file, self._check_share)
        most, size_bytes = self.settings.max_snapshot_bytes, 0
        with out.open("xb") as opened:
            while chunk := file.read(COPY_BYTES):
                size_bytes += len(chunk)
                if size_bytes > most:
                    raise UploadError(413, f"{name}: snapshots may have {most:,} bytes at most")
                opened.write(chunk)
        if written is not None:
            # Times without a year in it belong to the year in which it was written.
            os.utime(out, (written.timestamp(), written.timestamp()))
        # Refuse unrecognised files now, not during the analysis.
        SnapshotFile(out, name=name, max_inflated_bytes=self.settings.max_unpacked_bytes)
        with out.open("rb") as stored:
            sha256 = hashlib.file_digest(stored, "sha256").hexdigest()
        self.data.keep(out, sha256, self.incoming)
        return Received(name, label, "snapshot", sha256, size_bytes)

    def bundle(self, file: Any, name: str) -> Iterator[Received]:
        archive = self.incoming.path / "bundle"
        with archive.open("xb") as opened:
            shutil.copyfileobj(_Counted(file, self._check_share), opened, COPY_BYTES)
        with Bundle.open(archive, max_bytes=self.settings.max_unpacked_bytes) as bundle:
            parts = _parts(captures_of(bundle))
            count = sum(map(len, parts.values())) + len(bundle.snapshots)
            if not count:
                raise UploadError(422, f"{name}: neither a capture nor snapshots in this bundle")
            if count > self.settings.max_files:
                raise UploadError(413, f"{name}: {count:,} files; {self.settings.max_files} are allowed")
            bundle.name = name
            notes = not_read(bundle) or None
            for part, members in parts.items():
                for number, member in enumerate(members):
                    with bundle.path(member).open("rb") as source:
                        received = self.capture(source, show_name(member.name), member.label, part)
                    # Each capture of a bundle lists files missing from the bundle only once.
                    yield received if number else replace(received, notes=notes)
            for number, member in enumerate(bundle.snapshots):
                with bundle.path(member).open("rb") as source:
                    snapshot = self.snapshot(source, show_name(member.name), member.label, written=member.written)
                yield snapshot if number or parts else replace(snapshot, notes=notes)

    def _check_share(self) -> None:
        """Raise UploadError if the upload has taken its share of the disk."""
        if self.share.token is not None:
            self.share.arrived_bytes = sum(stored for stored, _ in self.taken) + self.incoming.size_bytes
            if refusal := self.share.refusal:
                raise UploadError(507, refusal)


class _Counted:
    """A file, with the number and the SHA-256 of the bytes read from it."""

    def __init__(self, file: Any, check: Callable[[], None]) -> None:
        """Count a file's bytes. `check`: called before each reading."""
        self._file = file
        self._check = check
        self.count = 0
        self.digest = hashlib.sha256()
        self.refusal: UploadError | None = None

    def read(self, size: int = -1, /) -> bytes:
        """Return `size` bytes or fewer; empty at the end."""
        try:
            self._check()
        except UploadError as error:
            self.refusal = error
            raise
        data: bytes = self._file.read(size)
        self.count += len(data)
        self.digest.update(data)
        return data


def _parts(captures: Mapping[str, Sequence[Member]]) -> dict[str, Sequence[Member]]:
    """Give the captures of a bundle short, distinct names; a single one needs none."""
    if len(captures) == 1:
        return {"": next(iter(captures.values()))}
    paths = [PurePosixPath(name) for name in captures]
    common = os.path.commonpath([path.parent for path in paths]) if paths else ""
    parts: dict[str, Sequence[Member]] = {}
    for path, members in zip(paths, captures.values(), strict=True):
        shown = _printable(str(path.relative_to(common)))[-MAX_NAME:]
        parts[shown if shown and shown not in parts else f"capture {len(parts) + 1}"] = members
    return parts


@contextmanager
def _in_words(name: str) -> Iterator[None]:
    try:
        yield
    except (CaptureError, SnapshotError) as error:
        where = f" (at byte {error.byte_offset})" if isinstance(error, CaptureError) and error.byte_offset else ""
        file = name if error.file.endswith("/bundle") else show_name(error.file)
        raise UploadError(422, f"{file}: {error.message}{where}") from error
