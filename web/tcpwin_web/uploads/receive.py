"""One upload in, stored files out: packets' headers, texts of snapshots, or both out of a bundle.

With payloads cut, none reaches the disk; of a bundle, only while it is unpacked into a private folder.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any, cast

from tcpwin.errors import CaptureError, SnapshotError
from tcpwin.snapshots import Bundle, SnapshotFile
from tcpwin.snapshots._open import choose_capture
from tcpwin.sources import write_headers
from tcpwin_web.settings import Settings
from tcpwin_web.storage import DataFolder
from tcpwin_web.uploads.kinds import HEAD_BYTES, Kind, tell_kind
from tcpwin_web.uploads.stream import Arriving, Peeked, UploadError

MAX_NAME = 255
COPY_BYTES = 1 << 20


@dataclass(frozen=True)
class Received:
    """One stored file; the attributes are those of its row."""

    name: str
    label: str
    kind: str
    sha256: str
    size_bytes: int
    packets_cut: int | None = None
    facts: dict[str, Any] | None = None


def show_name(name: str) -> str:
    """A name to show: its last part, without what cannot be printed. It never becomes a path."""
    last = name.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    shown = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in last)
    return shown.strip()[:MAX_NAME] or "unnamed"


def receive(file: Arriving, name: str, kind: Kind | None, data: DataFolder, settings: Settings) -> list[Received]:
    """Store what arrives. Runs in a thread.

    Args:
        kind: what it is, where the sender says so; told by its content otherwise.

    Raises:
        UploadError: it cannot be taken.
        OSError: the disk is full, or failed.
    """
    name = show_name(name)
    peeked = Peeked(file, HEAD_BYTES)
    if not peeked.head:
        raise UploadError(422, f"{name}: an empty file")
    with data.incoming() as folder, _in_words():
        match kind or tell_kind(peeked.head, name):
            case "bundle":
                return list(_take_bundle(peeked, name, folder, data, settings))
            case "snapshot":
                return [_take_snapshot(peeked, name, "", folder, data, settings)]
            case _:
                return [_take_capture(peeked, name, "", folder, data, settings)]


def _take_capture(file: Any, name: str, label: str, folder: Path, data: DataFolder, settings: Settings) -> Received:
    out = folder / "headers"
    headers = write_headers(file, out, name=name, whole=settings.keep_payloads, max_bytes=settings.max_unpacked_bytes)
    for warning in headers.facts["warnings"]:
        if warning["kind"] == "read_failed":
            raise UploadError(413, f"{name}: {warning['message']}")
    size_bytes = out.stat().st_size
    return Received(name, label, "capture", data.keep(out), size_bytes, headers.packets_cut, headers.facts)


def _take_snapshot(
    file: Any,
    name: str,
    label: str,
    folder: Path,
    data: DataFolder,
    settings: Settings,
    *,
    written: datetime | None = None,
) -> Received:
    out = folder / "snapshot"
    size_bytes = 0
    with out.open("xb") as opened:
        while chunk := file.read(COPY_BYTES):
            size_bytes += len(chunk)
            if size_bytes > settings.max_snapshot_bytes:
                raise UploadError(413, f"{name}: snapshots may have {settings.max_snapshot_bytes:,} bytes at most")
            opened.write(chunk)
    if written is not None:
        # Times in it that name no year are of the year in which it was written.
        os.utime(out, (written.timestamp(), written.timestamp()))
    # What cannot be recognised is refused now, not when it is analysed.
    SnapshotFile(out, name=name, max_inflated_bytes=settings.max_unpacked_bytes)
    return Received(name, label, "snapshot", data.keep(out), size_bytes)


def _take_bundle(file: Any, name: str, folder: Path, data: DataFolder, settings: Settings) -> Iterator[Received]:
    archive = folder / "bundle"
    with archive.open("xb") as opened:
        shutil.copyfileobj(file, opened, COPY_BYTES)
    with Bundle.open(archive, max_bytes=settings.max_unpacked_bytes) as bundle:
        # Of several captures that are no ring, which one is meant only the sender knows.
        captures = choose_capture(bundle)[1] if bundle.captures else []
        taken = [*captures, *bundle.snapshots]
        if not taken:
            raise UploadError(422, f"{name}: neither a capture nor snapshots in this bundle")
        if len(taken) > settings.max_files:
            raise UploadError(413, f"{name}: {len(taken):,} files; {settings.max_files} are allowed")
        for member in taken:
            shown = show_name(member.name)
            with bundle.path(member).open("rb") as opened_member:
                source = cast(IO[bytes], opened_member)
                if member.kind == "capture":
                    yield _take_capture(source, shown, member.label, folder, data, settings)
                else:
                    yield _take_snapshot(source, shown, member.label, folder, data, settings, written=member.written)


@contextmanager
def _in_words() -> Iterator[None]:
    try:
        yield
    except (CaptureError, SnapshotError) as error:
        where = f" (at byte {error.byte_offset})" if isinstance(error, CaptureError) and error.byte_offset else ""
        file = "the bundle" if error.file.endswith("/bundle") else show_name(error.file)
        raise UploadError(422, f"{file}: {error.message}{where}") from error
