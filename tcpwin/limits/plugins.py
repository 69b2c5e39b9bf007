"""Rules of other packages: what their entry points load.

In: a group of entry points, `sys.path`. Out: what they name. `importlib.metadata` costs more to import than judging a
small capture, so it is asked only where a package may name the group.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any


def load_plugins(group: str) -> list[Any]:
    """What the entry points of a group load; whatever loading raises comes through."""
    if not _may_be_named(group.encode()):
        return []
    from importlib.metadata import entry_points

    return [each.load() for each in entry_points(group=group)]


def _may_be_named(group: bytes) -> bool:
    """Whether a package may name a group: in a folder of `sys.path` its file does; elsewhere only importlib knows."""
    if any(hasattr(finder, "find_distributions") for finder in sys.meta_path if finder is not PathFinder):
        return True
    for folder in sys.path:
        try:
            if any(group in text for text in _entry_points_of(folder or ".")):
                return True
        except FileNotFoundError:
            continue
        except OSError:
            return True
    return False


def _entry_points_of(folder: str) -> Iterator[bytes]:
    """The files in which the packages of a folder name their entry points."""
    with os.scandir(folder) as entries:
        found = [entry.path for entry in entries if entry.name.lower().endswith(("dist-info", "egg-info"))]
    for path in found:
        try:
            yield Path(path, "entry_points.txt").read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            continue
