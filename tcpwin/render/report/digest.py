"""Digests by which a report can be checked against its capture: of each captured file, of the results, of the report.

The digest of the results omits names, addresses and times, so it does not change when addresses are replaced. A report
ends with the digest of everything before it. None of them is signed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from tcpwin.errors import OutputError

if TYPE_CHECKING:
    from tcpwin.limits import Analysis

MOST_CONNECTIONS = 1000
"""Number of connections that the digest of the results covers, the worst first."""
_VERDICT = ("limit", "second_limit", "share", "cost_ns", "confidence", "owner", "side", "direction", "is_problem")
_CAPTURE = re.compile(r"capture[_ ]sha-?256\W{1,12}([0-9a-f]{64}(?: [0-9a-f]{64})*)", re.IGNORECASE)
_RESULTS = re.compile(r"results[_ ]sha-?256\W{1,12}([0-9a-f]{64})", re.IGNORECASE)
_OWN = re.compile(rb"report[_ ]sha-?256\W{1,12}([0-9a-f]{64})\W{0,12}\Z", re.IGNORECASE)
_OWN_BYTES = 120
"""Maximum size of what `_OWN` matches."""


@dataclass(frozen=True, slots=True)
class Digest:
    """SHA-256 of the results, and of each captured file, separated by spaces (None without files)."""

    capture: str | None
    results: str

    def __str__(self) -> str:
        capture = "" if self.capture is None else f"Capture SHA-256: {self.capture}. "
        return f"{capture}Results SHA-256: {self.results}."


def digest_of(analysis: Analysis) -> Digest:
    """Compute the digests of an analysis; reads the capture's files."""
    connections = [
        [
            connection.id,
            *(getattr(connection.verdict, name) for name in _VERDICT),
            [[each.code, list(each.evidence.frames)] for each in connection.findings],
        ]
        for connection in analysis.worst(MOST_CONNECTIONS)
    ]
    counts = sorted(analysis.findings.counts.items())
    document = [analysis.capture.packets, analysis.capture.segments, len(analysis), counts, connections]
    text = json.dumps(document, separators=(",", ":"), default=str)
    return Digest(" ".join(analysis._source.digests()) or None, hashlib.sha256(text.encode()).hexdigest())


class Hashing(io.StringIO):
    """Passes text on to a file, keeps none of it, and computes its SHA-256."""

    def __init__(self, file: IO[str]) -> None:
        super().__init__()
        self._file = file
        self._hash = hashlib.sha256()

    def write(self, text: str) -> int:
        """Write a text."""
        self._hash.update(text.encode())
        return self._file.write(text)

    @property
    def hex(self) -> str:
        """The digest of all texts so far."""
        return self._hash.hexdigest()


def seal(content: bytes, end: str) -> bytes:
    """Append the digest of a report, then this end."""
    return content + f"Report SHA-256: {hashlib.sha256(content).hexdigest()}{end}\n".encode()


def seal_again(text: str) -> str:
    """Return a report that was changed on purpose with the digest of its new text."""
    content = text.encode()
    own = _OWN.search(content, max(len(content) - _OWN_BYTES, 0))
    if own is None:
        return text
    made = hashlib.sha256(content[: own.start()]).hexdigest().encode()
    return (content[: own.start(1)] + made + content[own.end(1) :]).decode()


def digest_in(text: str) -> str | None:
    """Return the digests that a report contains, or None."""
    results, capture = _RESULTS.search(text), _CAPTURE.search(text)
    return None if results is None else str(Digest(None if capture is None else capture[1], results[1]))


def check_report(report: str | os.PathLike[str], analysis: Analysis) -> str | None:
    """Compare a report in any form with the analysis of its capture; return how they differ, or None.

    Raises:
        OutputError: the report cannot be read, or has no digest.
    """
    name = os.fspath(report)
    try:
        content = Path(report).read_bytes()
    except OSError as error:
        raise OutputError(f"{name}: {error.strerror}") from None
    text = content.decode("utf-8", "replace")
    results, capture = _RESULTS.search(text), _CAPTURE.search(text)
    if results is None:
        raise OutputError(f"{name}: no digest: reports of this version have one")
    made = digest_of(analysis)
    if capture is not None and made.capture is not None and capture[1] != made.capture:
        return "the report is of another capture"
    if results[1] != made.results:
        return "the report has other results"
    own = _OWN.search(content, max(len(content) - _OWN_BYTES, 0))
    is_whole = own is not None and own[1].decode() == hashlib.sha256(content[: own.start()]).hexdigest()
    return None if is_whole else "the report was changed after it was written"
