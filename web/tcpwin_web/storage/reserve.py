"""Room that is kept on the disk for the day on which it is full: to delete something, a database needs some first."""

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
"""Of a small disk, no more than this part of it."""
ATTEMPTS = 3
NO_ROOM_BYTES = 128 << 10


class Reserve:
    """A file that only takes room, and is let go where room is needed to make room."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def size_bytes(self) -> int:
        """How much is kept."""
        return int(min(RESERVE_BYTES, shutil.disk_usage(self._path.parent).total // LEAST_SHARE))

    @property
    def is_short(self) -> bool:
        """Whether what is left is needed for deleting."""
        return shutil.disk_usage(self._path.parent).free < self.size_bytes and not self._is_kept

    @property
    def _is_kept(self) -> bool:
        try:
            return self._path.stat().st_size >= self.size_bytes
        except OSError:
            return False

    def keep(self) -> None:
        """Take the room, where there is enough besides."""
        with suppress(OSError):
            size = self.size_bytes
            if self._is_kept or shutil.disk_usage(self._path.parent).free < 2 * size:
                return
            opened = os.open(self._path, os.O_CREAT | os.O_WRONLY, 0o600)
            try:
                # Written, where the system cannot promise room: a hole takes none.
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(opened, 0, size)
                else:
                    os.write(opened, bytes(size))
            finally:
                os.close(opened)

    def let_go(self) -> None:
        """Give the room back."""
        with suppress(OSError):
            self._path.unlink()

    async def spend(self, act: Callable[[], Awaitable[T]]) -> T:
        """Do what makes room, or must not fail for want of a little: where the disk is full, with what was kept."""
        try:
            for _ in range(ATTEMPTS - 1):
                try:
                    return await act()
                except (SQLAlchemyError, OSError) as error:
                    # SQLite says in many ways that it could not write.
                    if not is_full(error) and shutil.disk_usage(self._path.parent).free > NO_ROOM_BYTES:
                        raise
                    self.let_go()
            return await act()
        finally:
            self.keep()
