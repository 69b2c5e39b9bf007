"""Readable bundled captures, and their bytes without compression."""

import gzip
import subprocess
import tomllib
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from live import HANG_S

import tcpwin

CAPTURES = Path(__file__).parents[2] / "captures"
FOLDERS = ("broken", "lab", "wild")


def _read_truths() -> dict[Path, dict[str, Any]]:
    truths = {}
    for path in sorted(path for folder in FOLDERS for path in (CAPTURES / folder).glob("*.toml")):
        truth = tomllib.loads(path.read_text(encoding="utf8"))
        truths[path.parent / truth["file"]] = truth
    return truths


TRUTHS = _read_truths()
UNREADABLE = [path for path, truth in TRUTHS.items() if "error" in truth]
READABLE = [path for path in TRUTHS if path not in UNREADABLE]
WHOLE = [path for path in READABLE if path.parent.name != "broken"]
BROKEN = [path for path in READABLE if path not in WHOLE]


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


@cache
def analyze(path: Path) -> tcpwin.Analysis:
    """Return the analysis of a bundled capture, shared by all tests of a process, which only read it."""
    return tcpwin.analyze(path)


@lru_cache(maxsize=16)
def rows_of(path: Path) -> list[dict[str, Any]]:
    return list(analyze(path).segments().rows())


def plain_bytes(path: Path, tool: Callable[[str], str]) -> bytes:
    """Return the decompressed capture, using programs other than tcpwin."""
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes())
    program = {".zst": "zstd", ".lz4": "lz4"}.get(path.suffix)
    if program is None:
        return path.read_bytes()
    return subprocess.run([tool(program), "-dcq", path], capture_output=True, check=True, timeout=HANG_S).stdout
