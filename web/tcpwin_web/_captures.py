"""Files and folders in, captures by id out, each analysed once while it is in use.

An id is made from a file's name and only looked up: it never becomes a path.
"""

import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import tcpwin

SUFFIXES = re.compile(r"\.(pcap|pcapng|cap)(\.(gz|zst|lz4))?$", re.IGNORECASE)
KEPT_ANALYSES = 8


@dataclass(frozen=True)
class Capture:
    """One capture file that the service may show."""

    id: str
    path: Path
    size_bytes: int

    @property
    def name(self) -> str:
        """Return the file's name as it is shown."""
        return self.path.name


@dataclass
class Captures:
    """The captures shown, by id, with the analyses used last."""

    by_id: dict[str, Capture]
    _analyses: OrderedDict[str, tcpwin.Analysis] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _analysing: threading.Lock = field(default_factory=threading.Lock)

    def __iter__(self) -> Iterator[Capture]:
        return iter(self.by_id.values())

    def analyze(self, capture: Capture) -> tcpwin.Analysis:
        """Return the capture's analysis, kept from the last time or made now."""
        analysis = self._recall(capture)
        if analysis is None:
            # One at a time, since an analysis uses the processor fully; whoever waited may find it made.
            with self._analysing:
                analysis = self._recall(capture) or tcpwin.analyze(capture.path)
                self._keep(capture, analysis)
        return analysis

    def _recall(self, capture: Capture) -> tcpwin.Analysis | None:
        with self._lock:
            if capture.id in self._analyses:
                self._analyses.move_to_end(capture.id)
            return self._analyses.get(capture.id)

    def _keep(self, capture: Capture, analysis: tcpwin.Analysis) -> None:
        with self._lock:
            self._analyses[capture.id] = analysis
            if len(self._analyses) > KEPT_ANALYSES:
                self._analyses.popitem(last=False)


def find_captures(paths: Iterable[str | Path]) -> Captures:
    """Collect the given files, and every capture under the given folders, in the order given."""
    by_id: dict[str, Capture] = {}
    for path in (file for given in paths for file in _files(Path(given))):
        base = re.sub(r"[^a-z0-9]+", "-", SUFFIXES.sub("", path.name).lower()).strip("-") or "capture"
        capture_id, number = base, 1
        while capture_id in by_id:
            number += 1
            capture_id = f"{base}-{number}"
        by_id[capture_id] = Capture(capture_id, path, path.stat().st_size)
    return Captures(by_id)


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.is_file() and SUFFIXES.search(file.name))
    return [path]
