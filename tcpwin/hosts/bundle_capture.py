"""The capture of a bundle, as a source of packets.

In: a bundle, and the name of a capture if it has several. Out: a Source that outlives the bundle's private folder. The
files of a ring, as written by `tcpdump -C` and `tcpwin snap`, are one capture.
"""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpwin.errors import SnapshotError
from tcpwin.sources import FileSource, PathSource, Source

if TYPE_CHECKING:
    from tcpwin.hosts.bundle import Bundle, Member

ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")
"""File extensions of bundles."""
_NAMED = 10
_RING = re.compile(
    r"(.+\.(?:pcap|pcapng|cap|dmp))(?:(\.?)([0-9]{1,6}))?(?:\.(?:gz|zst|lz4))?", re.ASCII | re.IGNORECASE | re.DOTALL
)
"""Matches a file's name without its number, and its number: `tcpdump -C` writes NAME0, NAME1 …, `tcpwin snap` NAME.1,
NAME.2 …

Only names with a capture's extension form a ring: snd1 and snd2, or 10.0.0.1 and 10.0.0.2, are two hosts.
"""
_STAMPED = re.compile(
    r"(.*?)(?:(?<=_)[0-9]{5}_)?((?:19|20)[0-9]{2}([-_.]?)(?:0[1-9]|1[0-2])\3(?:0[1-9]|[12][0-9]|3[01])[-_.T]?)"
    r"((?:[01][0-9]|2[0-3])([-_.:]?)[0-5][0-9](?:\5[0-5][0-9])?)([^0-9/][^/]*)",
    re.ASCII | re.DOTALL,
)
"""Matches the part of a name before its date, the date, the time of day, and the rest: `tcpdump -G` uses any pattern,
often NAME-%Y%m%d-%H%M%S.pcap, dumpcap NAME_00001_20261126020000.pcapng.
"""


def is_bundle(path: str | PathLike[str]) -> bool:
    """Whether a path is a folder or has an archive's name; False if inaccessible, so that reading reports it."""
    path = Path(path)
    try:
        return path.is_dir() or (path.name.lower().endswith(ARCHIVES) and path.is_file())
    except OSError:
        return False


@contextmanager
def opened(source: Any) -> Iterator[Bundle | None]:
    """Yield the bundle given as a source or by its path, or None for any other source."""
    if isinstance(source, str | PathLike):
        if not is_bundle(source):
            yield None
            return
        from tcpwin.hosts.bundle import Bundle

        with Bundle.open(fspath(source)) as bundle:
            yield bundle
        return
    if isinstance(source, Source):
        yield None
        return
    from tcpwin.hosts.bundle import Bundle

    yield source if isinstance(source, Bundle) else None


def open_capture(bundle: Bundle, name: str | None = None, *, option: str = "--capture") -> Source:
    """Open the capture of a bundle, with all its files if it is a ring.

    Args:
        option: the command-line option that chooses one, for the message.
        name: a capture, a ring (its files' name without the number) or one file of a ring, with or without its folder.

    Raises:
        SnapshotError: it has no capture, none of that name, or several and no name was given.
    """
    chosen, members = choose_capture(bundle, name, option=option)
    paths = [bundle.path(member) for member in members]
    is_folder = Path(bundle.name).is_dir()
    if len(paths) == 1:
        return PathSource(paths) if is_folder else FileSource(paths[0].open("rb"), name=chosen, owned=True)
    return _Ring(paths, name=chosen, keep=not is_folder)


class _Ring(PathSource):
    """Several files that form one capture. With `keep` they live as long as this source, in a private folder."""

    def __init__(self, paths: Sequence[Path], *, name: str, keep: bool) -> None:
        if keep:
            import shutil
            import tempfile

            folder = tempfile.mkdtemp(prefix="tcpwin-")
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            paths = [_link_or_copy(path, Path(folder) / f"{number:05}") for number, path in enumerate(paths)]
        super().__init__(paths)
        self.name = name


def _link_or_copy(path: Path, target: Path) -> Path:
    try:
        os.link(path, target)
    except OSError:
        import shutil

        shutil.copyfile(path, target)
    return target


def choose_capture(bundle: Bundle, name: str | None = None, *, option: str = "--capture") -> tuple[str, list[Member]]:
    """Return the display name of a bundle's capture, and its files, oldest first.

    Raises:
        SnapshotError: it has no capture, none of that name, or several and no name was given.
    """
    rings = captures_of(bundle)
    names = ", ".join(list(rings)[:_NAMED]) + (", …" if len(rings) > _NAMED else "")
    if not rings:
        raise SnapshotError("no capture in this bundle", bundle.name)
    if name is None:
        if len(rings) > 1:
            raise SnapshotError(f"{len(rings)} captures; choose one ({option} NAME): {names}", bundle.name)
        named = list(rings.items())
    else:
        alone = {member.name: [member] for member in bundle.captures}
        named = _named(rings, name) or _named(alone, name)
        if len(named) != 1:
            raise SnapshotError(f"{len(named) or 'no'} captures named {name}; available: {names}", bundle.name)
    ((chosen, members),) = named
    files = "" if len(members) == 1 else f" ({len(members)} files)"
    return f"{bundle.name}: {chosen}{files}", members


def _named(captures: dict[str, list[Member]], name: str) -> list[tuple[str, list[Member]]]:
    return [(each, members) for each, members in captures.items() if name in (each, Path(each).name)]


def captures_of(bundle: Bundle, *, by_day: bool = False) -> dict[str, list[Member]]:
    """Return a bundle's captures by name, each with its files, oldest first; rings by their name without the number.

    Files with equal numbers, such as NAME and NAME.gz, do not form a ring.

    Args:
        by_day: also join files whose names differ only in the time of day, under that name with `*` for the time.
    """
    return rings_of(bundle.captures, by_day=by_day)


def rings_of(captures: Iterable[Member], *, by_day: bool = False) -> dict[str, list[Member]]:
    """Group captures into rings likewise, wherever they are."""
    if by_day:
        days: dict[str, list[tuple[str, Member]]] = {}
        for member in captures:
            stamp = _STAMPED.fullmatch(member.name)
            name = f"{stamp[1]}{stamp[2]}*{stamp[6]}" if stamp and _RING.fullmatch(member.name) else member.name
            days.setdefault(name, []).append((stamp[4] if stamp else "", member))
        rings = {
            name: [member for _, member in sorted(day, key=lambda each: (each[0], each[1].name))]
            for name, day in days.items()
            if len(day) > 1
        }
        return rings | rings_of(day[0][1] for day in days.values() if len(day) == 1)
    groups: dict[str, list[tuple[Member, str, int | None]]] = {}
    for member in captures:
        match = _RING.fullmatch(member.name)
        base, dot, number = (match[1], match[2] or "", match[3]) if match else (member.name, "", None)
        groups.setdefault(base, []).append((member, dot, None if number is None else int(number)))
    numbered: dict[str, list[Member]] = {}
    for base, group in groups.items():
        if len(group) == 1 or len({number for _, _, number in group}) < len(group):
            numbered.update((member.name, [member]) for member, _, _ in group)
        else:
            numbered[base] = _oldest_first(group)
    return numbered


def _oldest_first(ring: list[tuple[Member, str, int | None]]) -> list[Member]:
    """Sort a ring's files: NAME.1 is older than NAME, and NAME.2 older than NAME.1.

    tcpdump counts up, and restarts at 0 if `-W` bounds the ring: the time of the last change decides, and the number if
    two times are equal (man tcpdump, -C and -W).
    """
    if any(dot for _, dot, _ in ring):
        return [member for member, _, _ in sorted(ring, key=lambda file: -(file[2] or 0))]
    times = {member.name: member.written.timestamp() if member.written else 0.0 for member, _, _ in ring}
    return [member for member, _, _ in sorted(ring, key=lambda file: (times[file[0].name], file[2] or 0))]
