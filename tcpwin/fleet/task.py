"""A capture as one of many: its task and its outcome, which are sent between processes and machines."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

HEAD_BYTES = 1 << 16
"""Bytes of each file's content used to identify it."""
SMALL_BYTES = 4 << 20
"""Captures up to this size are measured in groups whose rows share files."""
LARGE_BYTES = 256 << 20
"""Larger captures are measured by several threads if there are fewer of them than slots."""


@dataclass(frozen=True, slots=True)
class File:
    """An input file, and its identity to detect changes.

    Attributes:
        path: path or address.
        label: the host in its name, or "".
        version: its size, modification time, and a digest of its first `HEAD_BYTES`.
    """

    path: str
    version: str
    size_bytes: int = 0
    label: str = ""


@dataclass(frozen=True, slots=True)
class Task:
    """A capture to measure.

    Attributes:
        name: its name in the data set: a file's path, a ring without its number, or an address.
        site: its partition.
        files: files read as one, in order; none if `failure` is set.
        snapshots: snapshots of its hosts.
        member: the capture within an archive, which is then the only file.
        failure: why it cannot be read, if already known.
    """

    name: str
    site: str
    files: tuple[File, ...] = ()
    snapshots: tuple[File, ...] = ()
    member: str | None = None
    failure: str | None = None

    @property
    def is_small(self) -> bool:
        """Whether its fixed cost is large compared with its packets' cost."""
        return sum(each.size_bytes for each in self.files) <= SMALL_BYTES

    @property
    def is_large(self) -> bool:
        """Whether it would keep one slot busy long after everything else is finished."""
        return sum(each.size_bytes for each in self.files) > LARGE_BYTES

    @property
    def key(self) -> str:
        """Return the capture's key in the data set, independent of its content."""
        return key_of(self.site, self.name)

    @property
    def replaces(self) -> tuple[str, ...]:
        """Return the keys that its files would have as separate captures, which they may have been earlier."""
        return tuple(key_of(self.site, each.path) for each in self.files) if len(self.files) > 1 else ()

    def state(self, also: Iterable[str]) -> str:
        """Return the state that the rows depend on; if it changes, they must be rewritten.

        Args:
            also: optional tables.
        """
        files = [each for file in (*self.files, *self.snapshots) for each in (file.path, file.version)]
        return digest([*files, self.member or "", self.failure or "", *sorted(also)])


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a task.

    Attributes:
        rows: number of rows by table.
        paths: final paths of the files with them; the file with the capture's row comes last.
        error: why the capture could not be read, also stored in its row.
        is_passing: whether the reason is temporary, so that the next run retries.
        replaces: keys of captures that are now part of it.
    """

    key: str
    state: str
    name: str
    site: str
    rows: dict[str, int]
    paths: tuple[str, ...]
    packets: int
    file_bytes: int
    problems: int
    error: str | None
    is_passing: bool
    warnings: tuple[str, ...]
    replaces: tuple[str, ...]

    def entry(self) -> Entry:
        """Return its manifest line."""
        state = None if self.is_passing else self.state
        return Entry(self.key, state, self.name, self.site, self.paths, self.rows, self.packets, self.error)


@dataclass(frozen=True, slots=True)
class Performed:
    """Outcome of a group of tasks, with their rows in files in the staging folder.

    Attributes:
        token: this attempt's folder.
        paths: final paths of all files, by number.
    """

    token: str
    paths: tuple[str, ...]
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A capture's manifest entry.

    Attributes:
        state: None if the capture must be read again.
        paths: files with its rows, possibly shared with other captures.
    """

    key: str
    state: str | None
    name: str
    site: str
    paths: tuple[str, ...]
    rows: dict[str, int]
    packets: int
    error: str | None


def key_of(site: str, name: str) -> str:
    """Return a capture's key in the data set."""
    return digest([site, name])


def digest(parts: Iterable[str]) -> str:
    """Return a digest of these texts in sixteen hexadecimal digits."""
    hashed = hashlib.blake2b(digest_size=8)
    for part in parts:
        data = part.encode("utf-8", "surrogateescape")
        hashed.update(len(data).to_bytes(8, "big") + data)
    return hashed.hexdigest()
