"""Load the rules of other packages from their entry points.

In: a group of entry points, `sys.path`. Out: the loaded objects. `importlib.metadata` takes longer to import than a
small capture takes to judge, so it is used only if a package may declare the group.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any


def load_plugins(group: str) -> list[Any]:
    """Load the entry points of a group; errors while loading propagate."""
    if not _may_be_declared(group.encode()):
        return []
    from importlib.metadata import entry_points

    return [each.load() for each in entry_points(group=group)]


def _may_be_declared(group: bytes) -> bool:
    """Return whether a package may declare a group: by its files on `sys.path`, or True if only importlib can know."""
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
    """Yield the contents of the entry point files of the packages in a folder."""
    with os.scandir(folder) as entries:
        found = [entry.path for entry in entries if entry.name.lower().endswith(("dist-info", "egg-info"))]
    for path in found:
        try:
            yield Path(path, "entry_points.txt").read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            continue
