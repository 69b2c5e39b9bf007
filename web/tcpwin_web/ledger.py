"""Divide the process's resources among callers: descriptors, connections, streams, uploads, twins, disk.

Each resource has a total below the process's own limit, a share for each caller, and a reserve for the owner.
Slots that may be waited for are in `slots`; here a request gets its slot at once or is refused.
"""

import resource
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tcpwin_web.settings import Settings
from tcpwin_web.slots import BusyError, Caller, current_caller

MOST_FILES = 65_536
OWN_FILES = 64
"""Descriptors of an idle service: listening sockets, logs, locks, event loop, libraries."""
PER_WORKER, PER_UPLOAD, PER_SQLITE = 4, 2, 3
"""Descriptors of a worker, an upload, and a connection to SQLite (the database, its log, its index)."""
ACCEPTED_AT_ONCE, LEAST_CONNECTIONS = 4, 16
"""Connections that the event loop accepts before it looks after the open ones, if descriptors are scarce: more could
displace one before its request is read."""
SCARCE_FILES = 4096
MOST_CONNECTIONS, MOST_OF_ADDRESS = 4096, 512
MOST_UNREAD_BYTES = 256 << 20
"""Memory for all responses that clients have yet to read."""
STREAMS, FOLLOWERS, TWINS = 256, 16, 16
OWNER_DISK_SHARE, OWNER_DISK_BYTES = 20, 1 << 30
"""Part of the disk, up to this size, that only the owner may fill."""


class Account:
    """Slots of one resource, taken at once or refused."""

    def __init__(self, what: str, total: int) -> None:
        """Create the account: a caller gets a quarter of it, a token that several addresses share gets half.

        Args:
            what: the resource in the plural, for refusals.
        """
        self.total = total
        self._what = what
        self._each = max(total // 4, 1)
        self._reserved = max(total // 8, 1)
        self._held: Counter[str] = Counter()
        self.taken = 0

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold a slot for the current caller during the block.

        Raises:
            BusyError: the caller's share, or everything outside the owner's reserve, is taken.
        """
        caller = current_caller()
        keys = self._keys(caller)
        self._require(caller, keys)
        self.taken += 1
        self._held.update(keys.keys())
        try:
            yield
        finally:
            self.taken -= 1
            self._held.subtract(keys.keys())
            self._held += Counter()

    def _keys(self, caller: Caller) -> dict[str, int]:
        """Return the keys under which the caller is counted, with the limit of each."""
        if caller.is_owner:
            return {caller.name: self.total}
        keys = {caller.name: self._each}
        if caller.credential:
            keys[f"credential {caller.credential}"] = max(self.total // 2, 1)
        return keys

    def _require(self, caller: Caller, keys: dict[str, int]) -> None:
        if any(self._held[key] >= most for key, most in keys.items()):
            raise BusyError(f"you have too many {self._what} open already: close one, or try again later")
        if self.taken >= self.total - (0 if caller.is_owner else self._reserved):
            raise BusyError(f"too many {self._what} are open already: try again later")


class Disk:
    """The disk of the data folder: a token may fill half of the space, without the part reserved for the owner."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shares: set[Share] = set()

    @property
    def left_bytes(self) -> int:
        """Free space without the owner's reserve; may be negative."""
        usage = shutil.disk_usage(self._folder)
        return usage.free - min(usage.total // OWNER_DISK_SHARE, OWNER_DISK_BYTES)

    @contextmanager
    def share(self, token: str | None, stored_bytes: int) -> Iterator["Share"]:
        """Count an upload that arrives during the block.

        Args:
            token: the sender's token; None for the owner.
            stored_bytes: size of what that token has stored before.
        """
        share = Share(self, token, stored_bytes)
        self._shares.add(share)
        try:
            yield share
        finally:
            self._shares.discard(share)

    def arriving_bytes(self, token: str) -> int:
        """Return the bytes of a token's uploads in progress."""
        return sum(each.arrived_bytes for each in tuple(self._shares) if each.token == token)


@dataclass(eq=False)
class Share:
    """An upload in progress, and the space that it may take."""

    disk: Disk
    token: str | None
    stored_bytes: int
    arrived_bytes: int = 0

    @property
    def refusal(self) -> str | None:
        """Reason to refuse the rest of the upload; None if there is none."""
        if self.token is None:
            return None
        left_bytes = self.disk.left_bytes
        if left_bytes <= 0:
            return "the rest of the service's disk is reserved for its owner"
        if self.stored_bytes + self.disk.arriving_bytes(self.token) > left_bytes:
            return "this token's uploads take half of the disk space available to it: ask the owner to delete some"
        return None


@dataclass(frozen=True)
class Ledger:
    """Totals that fit into the process's descriptors.

    Attributes:
        files: descriptors that the process may open.
        connections, of_address: HTTP connections in all, and from one address.
        uploads: uploads at the same time, and as many unfinished ones.
        sessions: database connections.
        threads: threads that read files for pages.
    """

    files: int
    connections: int
    of_address: int
    uploads: int
    sessions: int
    threads: int

    @classmethod
    def of(cls, settings: Settings, files: int | None = None) -> Self:
        """Divide the descriptors: connections get what the other parts leave."""
        files = files or files_allowed()
        free = max(files - OWN_FILES, 0)
        is_sqlite = settings.url.startswith("sqlite")
        uploads = min(settings.uploads, max(free // 16, 1))
        sessions = min(15, max(free // 24, 4)) if is_sqlite else min(30, max(free // 16, 4))
        threads = min(32, max(free // 12, 4))
        taken = (
            2 * PER_UPLOAD * uploads
            + sessions * (PER_SQLITE if is_sqlite else 1)
            + threads
            + PER_WORKER * (2 * settings.workers + 3)
            + ACCEPTED_AT_ONCE
        )
        connections = min(max(free - taken, LEAST_CONNECTIONS), MOST_CONNECTIONS)
        return cls(files, connections, min(MOST_OF_ADDRESS, connections // 3), uploads, sessions, threads)

    @property
    def is_scarce(self) -> bool:
        """Whether a burst of connections could take all descriptors."""
        return self.files < SCARCE_FILES


def files_allowed() -> int:
    """Return the number of descriptors that the process may open after `allow_files`."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_FILES if most == resource.RLIM_INFINITY else min(most, MOST_FILES)


def allow_files() -> None:
    """Raise the process's limit of descriptors."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (files_allowed(), resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
