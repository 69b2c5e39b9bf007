"""The data folder: uploaded bytes under their sha256, results under their capture's id, what is just arriving.

No path is ever made of a name that came from outside.
"""

import fcntl
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)


class InUseError(Exception):
    """Another service works on the folder: two would clear away each other's files."""


class DataFolder:
    """Files and results of one service."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._blobs = path / "files"
        self._results = path / "results"
        self._incoming = path / "incoming"

    def prepare(self) -> None:
        """Make the folders, for their owner only, and clear away what an earlier service left half done.

        Raises:
            InUseError: another service runs on them.
        """
        for folder in (self.path, self._blobs, self._results):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._take_lock()
        shutil.rmtree(self._incoming, ignore_errors=True)
        self._incoming.mkdir(mode=0o700)
        for folder in self._results.glob("*.new"):
            shutil.rmtree(folder, ignore_errors=True)

    def _take_lock(self) -> None:
        self._lock = (self.path / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise InUseError(f"{self.path} is in use: another service runs on this data folder") from None

    def release(self) -> None:
        """Let another service use the folder."""
        self._lock.close()

    @contextmanager
    def incoming(self) -> Iterator[Path]:
        """A private folder for what arrives; gone after the block."""
        folder = self._incoming / secrets.token_hex(8)
        folder.mkdir(mode=0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def keep(self, file: Path) -> str:
        """Move a file that has arrived to its place, and return its sha256.

        What is there already stays: another analysis may be reading it, which a file with another time would end.
        """
        with file.open("rb") as opened:
            sha256 = hashlib.file_digest(opened, "sha256").hexdigest()
        place = self.blob(sha256)
        place.parent.mkdir(mode=0o700, exist_ok=True)
        if place.exists() and place.stat().st_size == file.stat().st_size:
            file.unlink()
        else:
            file.replace(place)
        return sha256

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
        shutil.rmtree(self.unfinished(capture_id), ignore_errors=True)

    @property
    def free_bytes(self) -> int:
        """Room left on the disk."""
        status = os.statvfs(self.path)
        return status.f_bavail * status.f_frsize
