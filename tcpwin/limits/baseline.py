"""Baselines: known, accepted findings, so that a check fails only for new or costlier ones.

In: findings of captures, or a baseline file. Out: a baseline file, or findings with the known ones separated. A finding
is identified by its capture, rule, direction and server port; connection numbers and client ports differ between runs.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tcpwin.analysis import DirectionName
from tcpwin.errors import SourceError
from tcpwin.limits.analysis import Analysis
from tcpwin.limits.finding import Finding
from tcpwin.limits.findings import Findings

SCHEMA = "tcpwin/baseline/1"
GROWTH = 0.25
"""A finding is new if its cost exceeds the known one's by more than this share plus `GROWTH_NS`."""
GROWTH_NS = 200_000_000
_MOST_BYTES = 64 << 20


class Kind(NamedTuple):
    """The identity of a finding across runs."""

    capture: str
    code: str
    direction: DirectionName | Literal["beyond"] | None
    port: int | None


@dataclass(frozen=True, slots=True)
class Known:
    """Known findings of one kind.

    Attributes:
        cost_ns: cost of the costliest.
    """

    count: int
    cost_ns: int

    def __add__(self, other: Known) -> Known:
        return Known(self.count + other.count, max(self.cost_ns, other.cost_ns))


@dataclass(frozen=True, slots=True)
class Baseline:
    """Known findings of captures, which are named by their paths relative to the baseline's folder."""

    file: Path
    kinds: Mapping[Kind, Known]

    def set_aside(self, analysis: Analysis, found: Findings) -> Findings:
        """Move the known findings to `Findings.known`; verdicts still consider all."""
        left = {kind: known.count for kind, known in self.kinds.items()}
        new: list[Finding] = []
        known: list[Finding] = []
        for finding in found:
            kind = _kind(self.file, analysis, finding)
            if left.get(kind, 0) and finding.cost_ns <= self.kinds[kind].cost_ns * (1 + GROWTH) + GROWTH_NS:
                left[kind] -= 1
                known.append(finding)
            else:
                new.append(finding)
        counts = Counter(each.code for each in new)
        # Findings that are only counted can only be compared by number.
        for code, count in _beyond(found).items():
            name = _capture(self.file, analysis.name)
            counts[code] += max(0, count - left.get(Kind(name, code, "beyond", None), 0))
        worst = max((each.severity for each in new), default=None)
        if sum(counts.values()) > len(new):
            worst = found.worst
        return replace(found, found=tuple(new), counts=dict(sorted(counts.items())), worst=worst, known=tuple(known))


def kinds_of(file: Path, analysis: Analysis, found: Findings) -> dict[Kind, Known]:
    """Accept all findings of a capture for a baseline in this file."""
    kinds: dict[Kind, Known] = {}
    for finding in found:
        kind, one = _kind(file, analysis, finding), Known(1, finding.cost_ns)
        kinds[kind] = kinds[kind] + one if kind in kinds else one
    for code, count in _beyond(found).items():
        kinds[Kind(_capture(file, analysis.name), code, "beyond", None)] = Known(count, 0)
    return kinds


def baseline_document(kinds: Mapping[Kind, Known]) -> dict[str, Any]:
    """Return the baseline as a JSON object, in an order that does not depend on the run."""
    order = sorted(kinds, key=lambda kind: (kind.capture, kind.code, kind.direction or "", kind.port or 0))
    rows = ({**kind._asdict(), "count": kinds[kind].count, "cost_ns": kinds[kind].cost_ns} for kind in order)
    return {"schema": SCHEMA, "known": list(rows)}


def read_baseline(file: Path) -> Baseline:
    """Read a baseline.

    Raises:
        SourceError: the file is missing, is not a baseline or is damaged.
    """
    try:
        with file.open("rb") as opened:
            data = opened.read(_MOST_BYTES + 1)
    except OSError as error:
        raise SourceError(f"{file}: {error.strerror}; `tcpwin check --write-baseline {file}` writes it") from None
    try:
        document = json.loads(data) if len(data) <= _MOST_BYTES else None
        if not isinstance(document, dict) or document["schema"] != SCHEMA:
            raise SourceError(f"{file} is not a baseline: `tcpwin check --write-baseline {file}` writes one")
        return Baseline(file, dict(map(_read_row, document["known"])))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise SourceError(f"{file} is damaged: `tcpwin check --write-baseline {file}` writes it again") from None


def _read_row(row: Mapping[str, Any]) -> tuple[Kind, Known]:
    kind = Kind(*(row[name] for name in Kind._fields))
    known = Known(row["count"], row["cost_ns"])
    texts = (kind.capture, kind.code, "" if kind.direction is None else kind.direction)
    numbers = (0 if kind.port is None else kind.port, known.count, known.cost_ns)
    if not all(type(each) is str for each in texts) or not all(type(each) is int and each >= 0 for each in numbers):
        raise ValueError("a row of a baseline")
    return kind, known


def _beyond(found: Findings) -> dict[str, int]:
    """Count the findings beyond those kept individually, for each rule that has any."""
    listed = Counter(each.code for each in found)
    return {code: count - listed[code] for code, count in found.counts.items() if count > listed[code]}


def _kind(file: Path, analysis: Analysis, finding: Finding) -> Kind:
    port = None if finding.connection is None else analysis.connections[finding.connection].b.port
    return Kind(_capture(file, analysis.name), finding.code, finding.direction, port)


def _capture(file: Path, name: str) -> str:
    """Return the baseline's name for a capture; a source that is not a file, such as standard input, keeps its name."""
    if not Path(name).exists():
        return name
    try:
        return Path(os.path.relpath(name, file.absolute().parent)).as_posix()
    except ValueError:
        return Path(name).as_posix()
