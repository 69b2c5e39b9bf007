"""Truths of drawn worlds as data: drawn settings and each run's duration, without captures.

Reads ``seed-N.jsonl`` in this folder and returns what each world's limits cost. The files are made from a sweep of
`tcpwin lab worlds`: ``python tests/worlds/truths.py FOLDER/worlds.jsonl > tests/worlds/seed-N.jsonl``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tcpwin.lab import LiftResult, Times, lift_result, world

HERE = Path(__file__).resolve().parent
SEEDS = (1, 2, 3, 4, 5)
"""The rules were written on the worlds of the first seed, and corrected with those of the next three; the last was
scored once, unseen.
"""
_TIMES = ("completion_ns", "delays_ns")


@dataclass(frozen=True)
class Truth:
    """A world: number, story, drawn settings, and costs of its limits (`result.limit`, `result.alike`)."""

    seed: int
    number: int
    story: str
    drawn: dict[str, Any]
    result: LiftResult


@cache
def read_truths(seed: int) -> tuple[Truth, ...]:
    """Return the worlds of a seed by number; none if it was not run."""
    path = HERE / f"seed-{seed}.jsonl"
    return tuple(_read(seed, json.loads(line)) for line in path.read_text().splitlines()) if path.exists() else ()


def compact(lines: Iterable[str]) -> Iterator[str]:
    """Return a sweep's lines by number, without redundant data."""
    for line in sorted(map(json.loads, lines), key=lambda each: each["number"]):
        stored = {key: line[key] for key in ("number", "story", "drawn")}
        stored["base"] = _times(line["base"])
        stored["lifts"] = {each["name"]: _times(each) for each in line["lifts"]}
        yield json.dumps(stored, separators=(",", ":"), ensure_ascii=False)


def _read(seed: int, line: dict[str, Any]) -> Truth:
    times = {name: Times(*values) for name, values in line["lifts"].items()}
    result = lift_result(world(seed, line["number"]), "stock", Times(*line["base"]), times)
    return Truth(seed, line["number"], line["story"], line["drawn"], result)


def _times(of: dict[str, int]) -> list[int]:
    """Return the time to the last byte and, for messages, the sum of their delays."""
    return [of[name] for name in _TIMES if name in of]


if __name__ == "__main__":
    with Path(sys.argv[1]).open(encoding="utf8") as sweep:
        sys.stdout.writelines(f"{line}\n" for line in compact(sweep))
