"""A folder of captures: its content, and a cache of recent analyses.

Names cannot lead outside, neither upwards nor by a symbolic link.
"""

from __future__ import annotations

import os
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tcpwin.errors import SourceError
from tcpwin.sources import Selection
from tcpwin.units import name_text

if TYPE_CHECKING:
    from tcpwin.limits import Analysis

MOST_LISTED = 100
MOST_LOOKED_AT = 20_000
MOST_KEPT = 4
"""Cached analyses: the next request is usually about the same capture."""
_CAPTURE = re.compile(r".+\.(?:pcap|pcapng|cap|dmp)\d{0,6}(?:\.(?:gz|zst|lz4))?", re.IGNORECASE | re.DOTALL)
_BUNDLE = re.compile(r".+\.(?:zip|tar|tar\.gz|tgz)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Entry:
    """A capture, or a bundle of captures and snapshots, with the name shown to agents."""

    name: str
    kind: str
    size_bytes: int


class Folder:
    """A folder, without access beyond it.

    Raises:
        SourceError: it is not a folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.root = Path(path).resolve()
        if not self.root.is_dir():
            raise SourceError(f"{os.fspath(path)} is not a folder")
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[object, ...], Analysis] = OrderedDict()

    def entries(self) -> tuple[list[Entry], bool]:
        """List captures and bundles by name, including subfolders, and return whether the list is complete."""
        found: list[Entry] = []
        for path in self._files():
            if len(found) == MOST_LISTED:
                return found, False
            kind = _kind(path)
            if kind is not None and self._is_inside(path) and path.is_file():
                found.append(Entry(name_text(path.relative_to(self.root).as_posix()), kind, path.stat().st_size))
        return found, True

    def _files(self) -> Iterator[Path]:
        looked_at = 0
        for above, folders, files in os.walk(self.root):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(files):
                looked_at += 1
                if looked_at > MOST_LOOKED_AT:
                    return
                yield Path(above, name)

    def _is_inside(self, path: Path) -> bool:
        return path.resolve().is_relative_to(self.root)

    def path(self, name: str) -> Path:
        """Return the path of a capture by name.

        Raises:
            SourceError: the folder has no such capture.
        """
        path: Path | None
        try:
            path = (self.root / name).resolve(strict=True)
        except (OSError, ValueError, RuntimeError):
            path = self._shown_as(name)
        if path is None or not path.is_relative_to(self.root) or not path.is_file() or _kind(path) is None:
            raise SourceError(f"no capture {name!r} in this folder: list_captures lists the available ones")
        return path

    def _shown_as(self, name: str) -> Path | None:
        """Return the file shown under this name: names with control or undecodable characters are shown differently."""
        for path in self._files():
            if name_text(path.relative_to(self.root).as_posix()) == name:
                return path.resolve()
        return None

    def analyse(
        self, name: str, filter: str | None = None, start: str | None = None, end: str | None = None
    ) -> Analysis:
        """Analyse a capture, or a selection of its packets.

        Raises:
            TcpwinError: it cannot be read, or the filter is invalid.
            ArgumentError: the span is invalid.
        """
        from tcpwin.limits import analyze

        path = self.path(name)
        Selection(filter, start, end)
        status = path.stat()
        key = (path, status.st_size, status.st_mtime_ns, filter, start, end)
        with self._lock:
            if (kept := self._kept.get(key)) is not None:
                self._kept.move_to_end(key)
                return kept
            analysis = analyze(os.fspath(path), filter=filter, start=start, end=end)
            self._kept[key] = analysis
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
            return analysis


def _kind(path: Path) -> str | None:
    """Return a file's kind by its name."""
    if _CAPTURE.fullmatch(path.name):
        return "capture"
    return "bundle" if _BUNDLE.fullmatch(path.name) else None
