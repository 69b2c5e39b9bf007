"""Captures in object stores and on web servers: listed remotely, copied one at a time, deleted after measuring.

In: addresses. Out: tasks; and for a task a temporary folder with its files. Credentials and endpoints come from the
environment, as for the clouds' tools.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from tcpwin.errors import SourceError, TcpwinError
from tcpwin.fleet.task import File, Task
from tcpwin.hosts import Member, rings_of
from tcpwin.processes import alone
from tcpwin.sources import CHUNK_BYTES, is_of_store, open_store, store_reason

SNAPSHOT_BYTES = 64 << 20
"""Objects next to a capture that are larger are not fetched as snapshots."""
SNAPSHOTS = 1000
_CAPTURE_NAME = re.compile(r"\.(pcap|pcapng|cap|dmp)\.?\d*(\.(gz|zst|lz4))?$", re.IGNORECASE)
_SNAPSHOT_NAME = re.compile(r"\.(txt|log|out|csv|json|jsonl|ndjson)(\.gz)?$", re.IGNORECASE)
_WILD = re.compile(r"[*?]")


def discover_objects(address: str, site: str | None) -> list[Task]:
    """Return the captures at an address: one object, all below a prefix, or those of a pattern; on web servers one
    file.

    Raises:
        SourceError: the store does not answer, or has nothing at the address.
    """
    # The client's threads do not survive a fork, so a process that forks must never have used one.
    return alone(_discovered, address, site)


def _discovered(address: str, site: str | None) -> list[Task]:
    store, root, path = open_store(address)
    objects: list[Any]
    try:
        import obstore

        is_web = root.startswith("http")
        if is_web or (_CAPTURE_NAME.search(path) and not _WILD.search(path)):
            objects = [obstore.head(store, path)]
            # A server returns a single file under the requested name.
            objects[0] = {**objects[0], "path": path}
        else:
            objects = list(_listed(store, path))
    except FileNotFoundError:
        raise SourceError(f"{address}: nothing found") from None
    except Exception as error:
        if not is_of_store(error):
            raise
        raise SourceError(f"{address}: {store_reason(error)}") from None
    return list(_tasks(root, objects, site))


def _listed(store: Any, path: str) -> Iterator[Any]:
    import obstore

    fixed = _WILD.split(path)[0]
    prefix = fixed.rpartition("/")[0] if _WILD.search(path) else path.rstrip("/")
    wanted = _pattern(path) if _WILD.search(path) else None
    for batch in obstore.list(store, prefix or None):
        yield from (each for each in batch if wanted is None or wanted.fullmatch(each["path"]))


def _pattern(path: str) -> re.Pattern[str]:
    parts = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(parts.get(part) or re.escape(part) for part in re.split(r"(\*\*/|\*\*|\*|\?)", path)))


def _tasks(root: str, objects: Sequence[Any], site: str | None) -> Iterator[Task]:
    """Yield captures by name; other objects in a capture's folder may be snapshots and are examined with it."""
    captures = []
    beside: dict[str, list[File]] = defaultdict(list)
    files = {each["path"]: _file(root, each) for each in objects}
    for number, each in enumerate(sorted(objects, key=lambda each: str(each["path"]))):
        name, size = each["path"], each["size"]
        if _CAPTURE_NAME.search(name):
            captures.append(Member(number, name, "capture", None, "", size, each["last_modified"]))
        elif _SNAPSHOT_NAME.search(name) and size <= SNAPSHOT_BYTES:
            beside[PurePosixPath(name).parent.as_posix()].append(files[name])
    for name, members in sorted(rings_of(captures, by_day=True).items()):
        parent = PurePosixPath(name).parent
        own_site = site or unquote(parent.name) or urlsplit(root).netloc
        own = tuple(files[member.name] for member in members)
        yield Task(f"{root}/{name}", own_site, own, tuple(beside[parent.as_posix()][:SNAPSHOTS]))


def _file(root: str, fields: Any) -> File:
    # The ETag of a single object is quoted, as in HTTP; in a list it is not.
    version = (fields.get("e_tag") or str(fields.get("last_modified"))).strip('"')
    return File(f"{root}/{fields['path']}", f"{fields['size']}-{version}", fields["size"])


@contextmanager
def fetched(task: Task) -> Iterator[tuple[list[str], list[tuple[str, str] | str]]]:
    """Yield the captures and snapshots of a task as files, for the duration of a `with` statement.

    Raises:
        TcpwinError: no space for a copy, or an object no longer exists.
        OSError: the store refuses it.
    """
    with tempfile.TemporaryDirectory(prefix="tcpwin-") as folder:
        needed, free = sum(each.size_bytes for each in (*task.files, *task.snapshots)), shutil.disk_usage(folder).free
        if needed > free:
            raise TcpwinError(f"{task.name}: a copy takes {needed:,} bytes, and {free:,} are free (TMPDIR)")
        paths = [str(_fetch(each, Path(folder))) for each in task.files]
        if not task.snapshots:
            yield paths, []
            return
        from tcpwin.hosts import Bundle

        beside = Path(folder) / "beside"
        beside.mkdir()
        for each in task.snapshots:
            _fetch(each, beside)
        with Bundle.open(beside) as bundle:
            found = [(each.label, str(bundle.path(each))) for each in bundle.snapshots]
            yield paths, [(label, path) if label else path for label, path in found]


def _fetch(file: File, folder: Path) -> Path:
    """Copy an object in pieces."""
    import obstore

    target = folder / quote(PurePosixPath(urlsplit(file.path).path).name, safe="._-")
    store, _, path = open_store(file.path)
    try:
        with target.open("wb") as out:
            for piece in obstore.get(store, path).stream(min_chunk_size=CHUNK_BYTES):
                out.write(piece)
    except FileNotFoundError:
        raise TcpwinError(f"{file.path}: it no longer exists") from None
    except Exception as error:
        if not is_of_store(error):
            raise
        raise OSError(f"{file.path}: {store_reason(error)}") from None
    if target.stat().st_size != file.size_bytes:
        raise OSError(f"{file.path}: only {target.stat().st_size:,} of {file.size_bytes:,} bytes arrived")
    return target
