"""Discovery of captures and their snapshots in files, folders, archives and patterns.

In: sources. Out: tasks, ordered by name. Files are read only as far as needed to recognise them.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from tcpwin.errors import SourceError, TcpwinError
from tcpwin.fleet.objects import discover_objects
from tcpwin.fleet.task import HEAD_BYTES, File, Task
from tcpwin.hosts import captures_of, is_bundle
from tcpwin.sources import is_address

if TYPE_CHECKING:
    from tcpwin.hosts import Bundle, Member

MAX_MEMBERS = 10_000_000
"""Maximum number of files in a folder."""
SHARING = 10
"""Up to this many captures in a folder share all its snapshots; with more, each uses those of the host in its name."""
_CAPTURE_NAME = re.compile(r"\.p?cap(ng)?\d*(\.(gz|zst|lz4))?$", re.IGNORECASE)


def discover(sources: Iterable[str], site: str | None = None) -> Iterator[Task]:
    """Yield the captures of all sources, each once.

    Args:
        sources: paths and patterns (``**`` matches any folders); ``SITE=SOURCE`` names the site of a source.
        site: site of all others; by default the name of the capture's folder.

    Raises:
        SourceError: a source does not exist or contains no capture.
    """
    seen: set[str] = set()
    for named in sources:
        own_site, source = split_site(named)
        found = 0
        for task in _of_source(source, own_site or site):
            found += 1
            if task.key not in seen:
                seen.add(task.key)
                yield task
        if not found:
            raise SourceError(f"{source}: no capture found")


def split_site(named: str) -> tuple[str | None, str]:
    """Split ``SITE=SOURCE``; an existing path is always a path."""
    site, equals, source = named.partition("=")
    is_named = equals and site and source and "/" not in site and not Path(named).exists()
    return (site, source) if is_named else (None, named)


def _of_source(source: str, site: str | None) -> Iterator[Task]:
    if is_address(source):
        yield from discover_objects(source, site)
        return
    if re.search(r"[*?\[]", source) and not os.path.lexists(source):
        for path in sorted(glob.iglob(source, recursive=True)):  # noqa: PTH207 - a pattern may be absolute
            if not Path(path).is_dir() or "**" not in source:
                yield from _of_path(Path(path), site)
        return
    yield from _of_path(Path(source), site)


def _of_path(path: Path, site: str | None) -> Iterator[Task]:
    path = Path(os.path.normpath(Path.cwd() / path))
    if path.is_dir():
        yield from _of_folder(path, site)
    elif is_bundle(path):
        yield from _of_archive(path, site)
    elif os.path.lexists(path):
        yield _task_of(str(path), site, [path])
    else:
        raise SourceError(f"{path}: no such file or folder")


def _of_folder(folder: Path, site: str | None) -> Iterator[Task]:
    """Yield every capture in a folder and its subfolders, with the snapshots of the nearest enclosing folder."""
    from tcpwin.hosts import Bundle

    try:
        bundle = Bundle.open(folder, max_members=MAX_MEMBERS)
    except TcpwinError as error:
        yield Task(str(folder), site or folder.name, failure=str(error))
        return
    with bundle:
        rings: dict[str, list[tuple[str, list[Member]]]] = defaultdict(list)
        for name, members in captures_of(bundle, by_day=True).items():
            rings[_parent(name)].append((name, members))
        snapshots = _snapshots_by_folder(bundle, rings)
        labels = _labels(folder, [inner for inner in rings if snapshots[inner]])
        broken = [each for each in bundle.members if each.kind == "unknown" and _CAPTURE_NAME.search(each.name)]
        archives = [folder / each.name for each in bundle.members if is_bundle(folder / each.name)]
        tasks = [
            _task_of(
                str(folder / name),
                site,
                [bundle.path(each) for each in members],
                _of_host(
                    [bundle.path(each) for each in snapshots[inner]], len(captures), bundle.path(members[0]), labels
                ),
            )
            for inner, captures in rings.items()
            for name, members in captures
        ]
        tasks += [_doubtful(folder / each.name, site, each.reason) for each in broken]
    for path in archives:
        tasks += [task for task in _of_archive(path, site) if task.member is not None]
    yield from sorted(tasks, key=lambda task: task.name)


def _snapshots_by_folder(bundle: Bundle, captures: Iterable[str]) -> dict[str, list[Member]]:
    found: dict[str, list[Member]] = defaultdict(list)
    folders = set(captures)
    for each in bundle.snapshots:
        around = [_parent(each.name)]
        while around[-1]:
            around.append(_parent(around[-1]))
        nearest = next((inner for inner in around if inner in folders), None)
        if nearest is not None:
            found[nearest].append(each)
    return found


def _labels(folder: Path, inside: Iterable[str]) -> dict[Path, str]:
    """Return the hosts of files relative to their own folder; seen from above, a whole folder would seem one host."""
    from tcpwin.hosts import Bundle

    found: dict[Path, str] = {}
    for inner in inside:
        with Bundle.open(folder / inner, max_members=MAX_MEMBERS) as bundle:
            found |= {bundle.path(each): each.label for each in (*bundle.snapshots, *bundle.captures)}
    return found


def _of_host(
    snapshots: Sequence[Path], captures: int, capture: Path, labels: Mapping[Path, str]
) -> list[tuple[str, Path]]:
    """Return the snapshots for a capture, each with its host."""
    if captures <= SHARING:
        return [(labels[each], each) for each in snapshots]
    own = labels.get(capture)
    return [(own, each) for each in snapshots if own and labels[each] == own]


def _of_archive(path: Path, site: str | None) -> Iterator[Task]:
    from tcpwin.hosts import Bundle

    try:
        with Bundle.open(path) as bundle:
            names = list(captures_of(bundle))
    except (TcpwinError, OSError) as error:
        yield _failed(path, site, str(error))
        return
    for name in sorted(names):
        yield _task_of(str(path / name), site, [path], member=name)
    if not names:
        yield _failed(path, site, f"{path}: no capture in this bundle")


def _task_of(
    name: str,
    site: str | None,
    paths: Sequence[Path],
    snapshots: Sequence[tuple[str, Path]] = (),
    member: str | None = None,
) -> Task:
    files = tuple(map(_file, paths))
    given = tuple(_file(each, label) for label, each in snapshots)
    return Task(name, site or paths[0].parent.name or "none", files, given, member)


def _doubtful(path: Path, site: str | None, reason: str | None) -> Task:
    """Return a task for a file named like a capture that does not begin as one; reading it reports why."""
    return _task_of(str(path), site, [path]) if path.is_file() else _failed(path, site, f"{path}: {reason}")


def _failed(path: Path, site: str | None, failure: str) -> Task:
    return Task(str(path), site or path.parent.name, (_file(path),), failure=failure)


def _file(path: Path, label: str = "") -> File:
    """Return a file's identity; reading an inaccessible one reports the error."""
    try:
        status = path.stat()
        head = b""
        if path.is_file():
            with path.open("rb") as file:
                head = file.read(HEAD_BYTES)
    except OSError:
        return File(str(path), "", 0, label)
    digest = hashlib.blake2b(head, digest_size=16).hexdigest()
    return File(str(path), f"{status.st_size}-{status.st_mtime_ns}-{digest}", status.st_size, label)


def _parent(name: str) -> str:
    parent = PurePosixPath(name).parent.as_posix()
    return "" if parent == "." else parent
