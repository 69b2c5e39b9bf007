"""Findings that are known and accepted, so that a check fails for what is new or has grown.

In: findings of captures, or a file that was written of them. Out: a file; or findings of which the known ones are set
aside. A finding is known by its capture, its rule, its direction and the server's port: numbers of connections and the
client's port differ from run to run.
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
"""A finding that costs so much more than the known one, and `GROWTH_NS`, is new."""
GROWTH_NS = 200_000_000
_MOST_BYTES = 64 << 20


class Kind(NamedTuple):
    """What makes two findings the same in two runs."""

    capture: str
    code: str
    direction: DirectionName | Literal["beyond"] | None
    port: int | None


@dataclass(frozen=True, slots=True)
class Known:
    """Findings of one kind.

    Attributes:
        cost_ns: of the costliest.
    """

    count: int
    cost_ns: int

    def __add__(self, other: Known) -> Known:
        return Known(self.count + other.count, max(self.cost_ns, other.cost_ns))


@dataclass(frozen=True, slots=True)
class Baseline:
    """What is known of captures, each by its path from the folder of the baseline's file."""

    file: Path
    kinds: Mapping[Kind, Known]

    def set_aside(self, analysis: Analysis, found: Findings) -> Findings:
        """The same findings without the known ones, which `Findings.known` has; verdicts go by all."""
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
        # Of those that are not kept one by one only the number is known.
        for code, count in _beyond(found).items():
            name = _capture(self.file, analysis.name)
            counts[code] += max(0, count - left.get(Kind(name, code, "beyond", None), 0))
        worst = max((each.severity for each in new), default=None)
        if sum(counts.values()) > len(new):
            worst = found.worst
        return replace(found, found=tuple(new), counts=dict(sorted(counts.items())), worst=worst, known=tuple(known))


def kinds_of(file: Path, analysis: Analysis, found: Findings) -> dict[Kind, Known]:
    """What a baseline in this file knows, once all findings of a capture are accepted."""
    kinds: dict[Kind, Known] = {}
    for finding in found:
        kind, one = _kind(file, analysis, finding), Known(1, finding.cost_ns)
        kinds[kind] = kinds[kind] + one if kind in kinds else one
    for code, count in _beyond(found).items():
        kinds[Kind(_capture(file, analysis.name), code, "beyond", None)] = Known(count, 0)
    return kinds


def baseline_document(kinds: Mapping[Kind, Known]) -> dict[str, Any]:
    """The baseline as JSON has it, in an order that does not depend on the run."""
    order = sorted(kinds, key=lambda kind: (kind.capture, kind.code, kind.direction or "", kind.port or 0))
    rows = ({**kind._asdict(), "count": kinds[kind].count, "cost_ns": kinds[kind].cost_ns} for kind in order)
    return {"schema": SCHEMA, "known": list(rows)}


def read_baseline(file: Path) -> Baseline:
    """Read a baseline.

    Raises:
        SourceError: it is not there, or is none.
    """
    try:
        with file.open("rb") as opened:
            data = opened.read(_MOST_BYTES + 1)
    except OSError as error:
        raise SourceError(f"{file}: {error.strerror}; `tcpwin check --write-baseline {file}` writes it") from None
    try:
        document = json.loads(data) if len(data) <= _MOST_BYTES else None
        if not isinstance(document, dict) or document["schema"] != SCHEMA:
            raise SourceError(f"{file} is no baseline: `tcpwin check --write-baseline {file}` writes one")
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
    """How many findings of each rule are not kept one by one, of those rules that have such."""
    kept = Counter(each.code for each in found)
    return {code: count - kept[code] for code, count in found.counts.items() if count > kept[code]}


def _kind(file: Path, analysis: Analysis, finding: Finding) -> Kind:
    port = None if finding.connection is None else analysis.connections[finding.connection].b.port
    return Kind(_capture(file, analysis.name), finding.code, finding.direction, port)


def _capture(file: Path, name: str) -> str:
    """A capture as the baseline names it; what is no file, as standard input, by its name."""
    if not Path(name).exists():
        return name
    try:
        return Path(os.path.relpath(name, file.absolute().parent)).as_posix()
    except ValueError:
        return Path(name).as_posix()
