"""Find the captures to show from the start: named files and folders, or those of a source checkout."""

import re
from collections.abc import Iterable
from pathlib import Path

SUFFIXES = re.compile(r"\.((pcap|pcapng|cap|dmp)\d*(\.(gz|zst|lz4))?|zip|tar|tar\.gz|tgz)$", re.IGNORECASE)
BUNDLED = ("lab", "wild", "bundles")
"""Folders of a checkout's captures, without its broken ones, which are for tests."""


def find_shown(paths: Iterable[Path]) -> list[Path]:
    """Return the given files, and every capture and bundle under the given folders, in order."""
    return [file for path in paths for file in _files(path)]


def bundled() -> list[Path]:
    """Return the folders of bundled captures in a source checkout; empty if installed."""
    captures = Path(__file__).resolve().parents[2] / "captures"
    return [captures / name for name in BUNDLED if (captures / name).is_dir()]


def is_bundled(path: Path) -> bool:
    """Whether a file is in one of the bundled folders."""
    return any(path.resolve().is_relative_to(folder) for folder in bundled())


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.is_file() and SUFFIXES.search(file.name))
    return [path]
