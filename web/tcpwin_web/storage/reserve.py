"""Disk space reserved for a full disk: a database needs some to delete anything."""

import os
import shutil
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from sqlalchemy.exc import SQLAlchemyError

from tcpwin_web.storage.database import is_full

T = TypeVar("T")

RESERVE_BYTES = 4 << 20
LEAST_SHARE = 16
"""On a small disk, the reserve is at most one part in this many."""
ATTEMPTS = 3
NO_ROOM_BYTES = 128 << 10


class Reserve:
    """A file that only takes up space, and is deleted when that space is needed for deleting."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def size_bytes(self) -> int:
        """Size of the reserve."""
        return int(min(RESERVE_BYTES, shutil.disk_usage(self._path.parent).total // LEAST_SHARE))

    @property
    def is_short(self) -> bool:
        """Whether the remaining space is needed for deleting."""
        return shutil.disk_usage(self._path.parent).free < self.size_bytes and not self._is_kept

    @property
    def _is_kept(self) -> bool:
        try:
            return self._path.stat().st_size >= self.size_bytes
        except OSError:
            return False

    def keep(self) -> None:
        """Fill the reserve if enough space remains."""
        with suppress(OSError):
            size = self.size_bytes
            if self._is_kept or shutil.disk_usage(self._path.parent).free < 2 * size:
                return
            opened = os.open(self._path, os.O_CREAT | os.O_WRONLY, 0o600)
            try:
                # Write the bytes where the system cannot allocate them: a hole takes no space.
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(opened, 0, size)
                else:
                    os.write(opened, bytes(size))
            finally:
                os.close(opened)

    def release(self) -> None:
        """Delete the reserve."""
        with suppress(OSError):
            self._path.unlink()

    async def spend(self, act: Callable[[], Awaitable[T]]) -> T:
        """Run work that frees space, or must not fail on a full disk, with the reserve if necessary."""
        try:
            for _ in range(ATTEMPTS - 1):
                try:
                    return await act()
                except (SQLAlchemyError, OSError) as error:
                    # SQLite reports failed writes in many ways.
                    if not is_full(error) and shutil.disk_usage(self._path.parent).free > NO_ROOM_BYTES:
                        raise
                    self.release()
            return await act()
        finally:
            self.keep()
