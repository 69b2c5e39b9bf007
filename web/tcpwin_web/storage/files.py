"""The data folder: uploaded bytes under their sha256, results under their capture's id, what is just arriving.

No path is ever made of a name that came from outside.
"""

import fcntl
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import structlog

from tcpwin_web.results import layout
from tcpwin_web.storage.database import InUseError
from tcpwin_web.storage.reserve import Reserve

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)
_DOUBTFUL = "doubtful"

log = structlog.get_logger("tcpwin.storage")


class Incoming:
    """A private folder for what arrives, and a note of what may be without a row if the service ends now.

    Attributes:
        path: of the folder.
        kept: hashes of the files that went from it to their place.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.kept: list[str] = []

    def note(self, *names: str) -> None:
        """Write down hashes of files and ids of captures: the next service looks whether any row has them."""
        with (self.path / _DOUBTFUL).open("a") as opened:
            opened.writelines(f"{name}\n" for name in names)


class DataFolder:
    """Files and results of one service."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._blobs = path / "files"
        self._results = path / "results"
        self._incoming = path / "incoming"
        self.keys = path / "keys"
        self._lock: int | None = None
        self.reserve = Reserve(path / "reserve")

    def prepare(self) -> None:
        """Make the folders, for their owner only, and clear away results that an earlier service left half done.

        Raises:
            InUseError: another service runs on them.
        """
        for folder in (self.path, self._blobs, self._results, self._incoming, self.keys):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _keep_private(folder)
        self._take_lock()
        self.reserve.keep()
        for pattern in ("*.new*", "*/details/*.*", "*/series/*.*"):
            for folder in self._results.glob(pattern):
                shutil.rmtree(folder, ignore_errors=True)

    def doubtful(self) -> tuple[Sequence[str], Sequence[str]]:
        """Hashes of files, and ids of captures with results, that an earlier service may have left without a row."""
        names: dict[str, None] = {}
        for file in self._incoming.glob(f"*/{_DOUBTFUL}"):
            # Its last line may be half written.
            names |= dict.fromkeys(line for line in file.read_text(errors="replace").split("\n")[:-1])
        hashes = [name for name in names if _HASH.fullmatch(name)]
        return hashes, [name for name in names if _ID.fullmatch(name) and name not in hashes]

    def clear_incoming(self) -> None:
        """Delete what an earlier service was receiving, once nothing of it is doubtful any more."""
        shutil.rmtree(self._incoming, ignore_errors=True)
        self._incoming.mkdir(mode=0o700, exist_ok=True)

    def _take_lock(self) -> None:
        self._lock = os.open(self.path / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            raise InUseError(f"{self.path} is in use: another service runs on this data folder") from None

    def release(self) -> None:
        """Let another service use the folder."""
        if self._lock is not None:
            # A process that is being started may hold the descriptor too, until it runs another program.
            fcntl.flock(self._lock, fcntl.LOCK_UN)
            os.close(self._lock)
            self._lock = None

    @contextmanager
    def incoming(self) -> Iterator[Incoming]:
        """A private folder for what arrives; gone after the block."""
        folder = self._incoming / secrets.token_hex(8)
        folder.mkdir(mode=0o700)
        try:
            yield Incoming(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def leaving(self, hashes: Sequence[str], capture_id: str) -> Iterator[None]:
        """While these are deleted: should the service end meanwhile, the next one deletes the rest."""
        folder = self._incoming / secrets.token_hex(8)
        # On a full disk nothing can be noted, and deleting is what helps.
        with suppress(OSError):
            folder.mkdir(mode=0o700)
            Incoming(folder).note(*hashes, capture_id)
        # Where it fails the note stays.
        yield
        shutil.rmtree(folder, ignore_errors=True)

    def keep(self, file: Path, sha256: str, incoming: Incoming) -> None:
        """Move a file that has arrived, and has that hash, to its place.

        What is there already stays: another analysis may be reading it, which a file with another time would end.
        """
        incoming.note(sha256)
        incoming.kept.append(sha256)
        place = self.blob(sha256)
        place.parent.mkdir(mode=0o700, exist_ok=True)
        if place.exists() and place.stat().st_size == file.stat().st_size:
            file.unlink()
        else:
            file.replace(place)

    def blob(self, sha256: str) -> Path:
        """Where the bytes of that hash lie."""
        if not _HASH.fullmatch(sha256):
            raise ValueError("no sha256")
        return self._blobs / sha256[:2] / sha256

    def forget(self, sha256: str) -> None:
        """Delete the bytes of that hash."""
        self.blob(sha256).unlink(missing_ok=True)

    def results(self, capture_id: str) -> Path:
        """The folder of a capture's results."""
        if not _ID.fullmatch(capture_id):
            raise ValueError("no id")
        return self._results / capture_id

    def forget_results(self, capture_id: str) -> None:
        """Delete a capture's results, finished or not."""
        shutil.rmtree(self.results(capture_id), ignore_errors=True)
        self.forget_unfinished(capture_id)

    def unfinished(self, capture_id: str) -> Path:
        """Where a worker writes the results of a capture until all are there."""
        folder = self.results(capture_id)
        return folder.with_name(f"{folder.name}.new")

    def forget_unfinished(self, capture_id: str) -> None:
        """Delete what a worker left that did not come to its end."""
        unfinished = self.unfinished(capture_id)
        for folder in (unfinished, layout.replaced(unfinished)):
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def free_bytes(self) -> int:
        """Room left on the disk."""
        status = os.statvfs(self.path)
        return status.f_bavail * status.f_frsize

    @property
    def is_writable(self) -> bool:
        """Whether anything can be stored, but for want of room."""
        return os.access(self._incoming, os.W_OK) and not os.statvfs(self.path).f_flag & os.ST_RDONLY


def _keep_private(folder: Path) -> None:
    """Shut others out of a folder, also where it was there before with another mode."""
    if stat.S_IMODE(folder.stat().st_mode) & 0o077:
        try:
            folder.chmod(0o700)
        except OSError as error:
            # Of another owner, or on a file system that has no modes: it can be used, and its operator is told.
            log.warning("others may read the data folder", folder=str(folder), reason=error.strerror)
