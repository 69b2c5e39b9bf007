"""The capture of a bundle, as a source of packets.

In: a bundle, and the name of a capture where it has several. Out: a Source that outlives the bundle's private folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpwin.errors import SnapshotError
from tcpwin.sources import FileSource, PathSource, Source

if TYPE_CHECKING:
    from tcpwin.snapshots._bundle import Bundle, Member

_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")
_NAMED = 10


def is_bundle(path: str | PathLike[str]) -> bool:
    """Whether a path is a folder, or an archive by its name."""
    path = Path(path)
    return path.is_dir() or (path.name.lower().endswith(_ARCHIVES) and path.is_file())


@contextmanager
def opened(source: Any) -> Iterator[Bundle | None]:
    """The bundle that a source is, or that its path leads to; None for every other source."""
    if isinstance(source, str | PathLike):
        if not is_bundle(source):
            yield None
            return
        from tcpwin.snapshots._bundle import Bundle

        with Bundle.open(fspath(source)) as bundle:
            yield bundle
        return
    if isinstance(source, Source):
        yield None
        return
    from tcpwin.snapshots._bundle import Bundle

    yield source if isinstance(source, Bundle) else None


def open_capture(bundle: Bundle, name: str | None = None) -> Source:
    """The capture of a bundle.

    Raises:
        SnapshotError: it has none, none of that name, or several and no name was given.
    """
    member = _choose(bundle, name)
    path = bundle.path(member)
    if Path(bundle.name).is_dir():
        return PathSource([path])
    return FileSource(path.open("rb"), name=f"{bundle.name}: {member.name}", owned=True)


def _choose(bundle: Bundle, name: str | None) -> Member:
    found = bundle.captures
    told = ", ".join(each.name for each in found[:_NAMED]) + (", …" if len(found) > _NAMED else "")
    if not found:
        raise SnapshotError("no capture in this bundle", bundle.name)
    if name is not None:
        named = [each for each in found if name in (each.name, Path(each.name).name)]
        if len(named) != 1:
            raise SnapshotError(f"{len(named) or 'no'} captures named {name}; it has {told}", bundle.name)
        return named[0]
    if len(found) > 1:
        raise SnapshotError(f"{len(found)} captures; choose one (--capture NAME): {told}", bundle.name)
    return found[0]
