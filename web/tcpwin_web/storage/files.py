"""The data folder: uploaded files under their SHA-256, results under their capture's id, files still arriving.

No path is ever made from a name that came from outside.
"""

import fcntl
import os
import re
import secrets
import shutil
import stat
import time
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
UNFINISHED = ".new"
WORKERS = "workers-"
LAST_WORKER_SECONDS = 30.0
"""A killed service's workers end within moments; something else may hold their lock."""

log = structlog.get_logger("tcpwin.storage")


class Incoming:
    """A private folder for arriving files, with notes on what may lack a row if the service ends now.

    Attributes:
        path: the folder.
        kept: hashes of the files moved from it into place.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.kept: list[str] = []

    @property
    def size_bytes(self) -> int:
        """Total size of the files that are arriving."""
        return sum(each.stat().st_size for each in os.scandir(self.path))

    def note(self, *names: str) -> None:
        """Record hashes of files and ids of captures: the next service checks whether they have rows."""
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
        self.workers = path / f"{WORKERS}{secrets.token_hex(8)}"
        """File that each worker of this service locks while it runs: those of a killed one outlive it for a moment."""
        self.reserve = Reserve(path / "reserve")

    def prepare(self) -> None:
        """Create the folders, for their owner only, and delete half-written results of an earlier service.

        Raises:
            InUseError: another service runs on them.
        """
        for folder in (self.path, self._blobs, self._results, self._incoming, self.keys):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _keep_private(folder)
        self._take_lock()
        self._wait_for_earlier_workers()
        self.workers.touch(mode=0o600)
        self.reserve.keep()
        for old in self._results.glob(f"*{layout.replaced(Path(UNFINISHED))}"):
            # The earlier service ended while it replaced these results.
            place = old.with_name(old.name.removesuffix(str(layout.replaced(Path(UNFINISHED)))))
            if not place.exists():
                old.rename(place)
        for pattern in ("*.new*", "*/details/*.*", "*/series/*.*"):
            for folder in self._results.glob(pattern):
                shutil.rmtree(folder, ignore_errors=True)

    def doubtful(self) -> tuple[Sequence[str], Sequence[str]]:
        """Return file hashes and capture ids that an earlier service may have left without rows."""
        names: dict[str, None] = {}
        for file in self._incoming.glob(f"*/{_DOUBTFUL}"):
            # The last line may be incomplete.
            names |= dict.fromkeys(line for line in file.read_text(errors="replace").split("\n")[:-1])
        hashes = [name for name in names if _HASH.fullmatch(name)]
        return hashes, [name for name in names if _ID.fullmatch(name) and name not in hashes]

    def clear_incoming(self) -> None:
        """Delete the incoming files of an earlier service, after its leftovers are settled."""
        shutil.rmtree(self._incoming, ignore_errors=True)
        self._incoming.mkdir(mode=0o700, exist_ok=True)

    def _take_lock(self) -> None:
        self._lock = os.open(self.path / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            raise InUseError(f"{self.path} is in use: another service runs on this data folder") from None

    def _wait_for_earlier_workers(self) -> None:
        """Wait until no worker of an earlier service runs; one yet to begin ends, as its file is gone."""
        end_s = time.monotonic() + LAST_WORKER_SECONDS
        for file in self.path.glob(f"{WORKERS}*"):
            with file.open("rb") as opened:
                file.unlink()
                while time.monotonic() < end_s:
                    try:
                        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    except BlockingIOError:
                        time.sleep(0.01)
                    else:
                        break

    def release(self) -> None:
        """Release the folder for another service."""
        if self._lock is not None:
            # A process being started may still hold the descriptor, until it runs another program.
            fcntl.flock(self._lock, fcntl.LOCK_UN)
            os.close(self._lock)
            self._lock = None
            self.workers.unlink(missing_ok=True)

    @contextmanager
    def incoming(self) -> Iterator[Incoming]:
        """Make a private folder for arriving files; it is deleted after the block."""
        folder = self._incoming / secrets.token_hex(8)
        folder.mkdir(mode=0o700)
        try:
            yield Incoming(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def leaving(self, hashes: Sequence[str], capture_id: str) -> Iterator[None]:
        """Note files while they are deleted: if the service ends meanwhile, the next one deletes the rest."""
        folder = self._incoming / secrets.token_hex(8)
        # On a full disk no note can be written, and deleting is what helps.
        with suppress(OSError):
            folder.mkdir(mode=0o700)
            Incoming(folder).note(*hashes, capture_id)
        # If deleting fails, the note stays.
        yield
        shutil.rmtree(folder, ignore_errors=True)

    def keep(self, file: Path, sha256: str, incoming: Incoming) -> None:
        """Move an arrived file into place under its hash.

        An existing file stays: an analysis that is reading it would fail if its timestamp changed.
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
        """Return the path of the file with this hash."""
        if not _HASH.fullmatch(sha256):
            raise ValueError("no sha256")
        return self._blobs / sha256[:2] / sha256

    def forget(self, sha256: str) -> None:
        """Delete the file with this hash."""
        self.blob(sha256).unlink(missing_ok=True)

    def results(self, capture_id: str) -> Path:
        """Return the folder of a capture's results."""
        if not _ID.fullmatch(capture_id):
            raise ValueError("no id")
        return self._results / capture_id

    def ids_with_results(self) -> Sequence[str]:
        """Return the ids of captures that have a folder of results."""
        return [each.name for each in os.scandir(self._results) if _ID.fullmatch(each.name)]

    def forget_results(self, capture_id: str) -> None:
        """Delete a capture's results, finished or not."""
        shutil.rmtree(self.results(capture_id), ignore_errors=True)
        self.forget_unfinished(capture_id)

    def unfinished(self, capture_id: str) -> Path:
        """Return the folder for a capture's results while a worker writes them."""
        folder = self.results(capture_id)
        return folder.with_name(f"{folder.name}{UNFINISHED}")

    def forget_unfinished(self, capture_id: str) -> None:
        """Delete unfinished results."""
        unfinished = self.unfinished(capture_id)
        for folder in (unfinished, layout.replaced(unfinished)):
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def free_bytes(self) -> int:
        """Free space on the disk."""
        status = os.statvfs(self.path)
        return status.f_bavail * status.f_frsize

    @property
    def is_writable(self) -> bool:
        """Whether the folder is writable, apart from a lack of space."""
        return os.access(self._incoming, os.W_OK) and not os.statvfs(self.path).f_flag & os.ST_RDONLY


def _keep_private(folder: Path) -> None:
    """Make a folder accessible to its owner only, even if it existed."""
    if stat.S_IMODE(folder.stat().st_mode) & 0o077:
        try:
            folder.chmod(0o700)
        except OSError as error:
            # Owned by somebody else, or on a file system without modes: usable, with a warning for the operator.
            log.warning("others may read the data folder", folder=str(folder), reason=error.strerror)
