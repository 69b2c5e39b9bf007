"""One capture of many: what is to be read, and what came of it. Both are sent between processes and machines."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

HEAD_BYTES = 1 << 16
"""Of each file, what of its content tells it from another one."""
SMALL_BYTES = 4 << 20
"""Captures of no more are measured in groups, whose rows share files."""
LARGE_BYTES = 256 << 20
"""Captures of more are measured by several threads, where there are fewer of them than places."""


@dataclass(frozen=True, slots=True)
class File:
    """A file that is read, and what tells whether it is still the same.

    Attributes:
        path: or address.
        label: of the host that its name says; "" where it says none.
        version: its size, its time of change, and a digest of its first `HEAD_BYTES`.
    """

    path: str
    version: str
    size_bytes: int = 0
    label: str = ""


@dataclass(frozen=True, slots=True)
class Task:
    """A capture to measure.

    Attributes:
        name: what the data set calls it: the path of a file, a ring without its number, an address.
        site: the partition that it belongs to.
        files: that are read as one, in their order; none where `failure` says why.
        snapshots: of its hosts.
        member: the capture in an archive, which is the only file then.
        failure: why it cannot be read at all, where that is known already.
    """

    name: str
    site: str
    files: tuple[File, ...] = ()
    snapshots: tuple[File, ...] = ()
    member: str | None = None
    failure: str | None = None

    @property
    def is_small(self) -> bool:
        """Whether what it costs by itself is much beside what its packets cost."""
        return sum(each.size_bytes for each in self.files) <= SMALL_BYTES

    @property
    def is_large(self) -> bool:
        """Whether it would keep one place busy long after all else is done."""
        return sum(each.size_bytes for each in self.files) > LARGE_BYTES

    @property
    def key(self) -> str:
        """By which the data set knows the capture, whatever is in it."""
        return key_of(self.site, self.name)

    @property
    def replaces(self) -> tuple[str, ...]:
        """Keys that its files have as captures of their own, as they may have been before they were more."""
        return tuple(key_of(self.site, each.path) for each in self.files) if len(self.files) > 1 else ()

    def state(self, also: Iterable[str]) -> str:
        """What the rows depend on: another one means that they must be made anew.

        Args:
            also: tables that are asked for beside those that are always written.
        """
        files = [each for file in (*self.files, *self.snapshots) for each in (file.path, file.version)]
        return digest([*files, self.member or "", self.failure or "", *sorted(also)])


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a task.

    Attributes:
        rows: by table.
        paths: of the files that have them, as they are to stand in the data set; that of its own row is the last.
        error: why the capture could not be read; it has a row that says so.
        is_passing: the reason is not the capture, so that the next run tries again.
        replaces: keys of captures that are part of it now.
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
        """Its line of the manifest."""
        state = None if self.is_passing else self.state
        return Entry(self.key, state, self.name, self.site, self.paths, self.rows, self.packets, self.error)


@dataclass(frozen=True, slots=True)
class Performed:
    """What came of a group of tasks: their rows stand in files of the staging folder.

    Attributes:
        token: the folder of this attempt.
        paths: of all files, by their numbers, as they are to stand in the data set.
    """

    token: str
    paths: tuple[str, ...]
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A capture of the data set, as the manifest has it.

    Attributes:
        state: None where the capture is to be read again.
        paths: of the files that have its rows, and may have those of others.
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
    """By which the data set knows a capture."""
    return digest([site, name])


def digest(parts: Iterable[str]) -> str:
    """Sixteen hexadecimal digits, which tell these texts from others."""
    hashed = hashlib.blake2b(digest_size=8)
    for part in parts:
        data = part.encode("utf-8", "surrogateescape")
        hashed.update(len(data).to_bytes(8, "big") + data)
    return hashed.hexdigest()
