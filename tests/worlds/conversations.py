"""Drawn conversations, each with every limit lifted alone, over two namespaces; and how often verdicts are right.

From the folder ``tests``, ``python -m worlds.conversations run SEED COUNT FOLDER`` as root appends a line per world to
FOLDER/worlds.jsonl and keeps the captures of the unchanged runs; ``score FOLDER`` prints the tables.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servers.scenario import run
from worlds.owners import changed_by, expected_owners, gains_of, is_fix_right
from worlds.sweeping import apart, main, run_missing, tabulate

import tcpwin
from tcpwin.lab import LiftResult, Scenario, Times, conversation, conversation_story, lift_result, lifted, lifts_of
from tcpwin.limits import Verdict

POINTS = ("client", "middle", "server")
JOBS = 12
LIKE, NEAR = 1.5, 0.1
"""A cost within this factor of the gain is right; so is one within `NEAR` of the duration."""


def timed(scenario: Scenario, folder: Path) -> Times:
    """Run a scenario in a process, and return its duration."""
    apart(lambda: run(scenario, folder))
    lines = (folder / "log_receiver.jsonl").read_text().splitlines()
    return Times(json.loads(lines[-1])["completion_ns"])


def sweep(seed: int, numbers: Iterable[int], folder: Path) -> None:
    """Run these conversations, and each of their lifts, unless they have a line."""

    def one(number: int) -> dict[str, Any]:
        scenario = conversation(seed, number)
        with tempfile.TemporaryDirectory() as name:
            base = timed(scenario, Path(name))
            kept = folder / scenario.name
            kept.mkdir(exist_ok=True)
            for point in POINTS:
                shutil.copy(Path(name, f"{point}.pcap"), kept)
            times = {lift.name: timed(lifted(scenario, lift), Path(name)).completion_ns for lift in lifts_of(scenario)}
        return {"seed": seed, "story": conversation_story(seed, number), "base": base.completion_ns, "lifts": times}

    run_missing(numbers, folder, one, JOBS)


@dataclass(frozen=True)
class Row:
    """One conversation at one capture point."""

    story: str
    name: str
    point: str
    result: LiftResult
    verdict: Verdict

    @property
    def is_right(self) -> bool:
        return self.verdict.limit in self.result.alike

    @property
    def is_owner_right(self) -> bool:
        return self.verdict.owner in expected_owners(self.result)

    @property
    def is_fix_right(self) -> bool:
        return is_fix_right(
            changed_by(self.verdict), self.result.alike, gains_of(self.result), self.result.base.completion_ns
        )

    @property
    def gain_ns(self) -> int:
        """Return the most that lifting the named limit gained."""
        return max(0, gains_of(self.result).get(self.verdict.limit, 0))

    @property
    def is_near(self) -> bool:
        cost_ns, gain_ns = self.verdict.cost_ns or 0, self.gain_ns
        is_like = gain_ns / LIKE <= cost_ns <= gain_ns * LIKE
        return is_like or abs(cost_ns - gain_ns) <= NEAR * self.result.base.completion_ns


def rows_of(folder: Path, lines: Sequence[str]) -> Iterator[Row]:
    """Judge the captures in a folder against the truths."""
    for line in map(json.loads, lines):
        scenario = conversation(line["seed"], line["number"])
        times = {name: Times(each) for name, each in line["lifts"].items()}
        result = lift_result(scenario, "stock", Times(line["base"]), times)
        for point in POINTS:
            (connection,) = tcpwin.analyze(folder / scenario.name / f"{point}.pcap").connections
            yield Row(line["story"], scenario.name, point, result, connection.verdict)


def summary(rows: Sequence[Row]) -> str:
    """Return a table: right, certain and wrong, costs, by capture point."""
    return tabulate(rows, POINTS, cost_right=lambda row: row.is_near)


def mistake(row: Row) -> str | None:
    """Describe a wrong limit or cost."""
    if row.is_right and row.is_near:
        return None
    gains = {each.lift.name: round(each.gain_share, 2) for each in row.result.gains if each.gain_share > 0.02}
    said = f"{row.verdict.limit} {row.verdict.confidence} {(row.verdict.cost_ns or 0) / 1e9:.2f} s"
    mark = "cost " if row.is_right else "WRONG"
    took = f"{row.result.base.completion_ns / 1e9:.2f} s"
    return f"{mark} {row.name} {row.story} {row.point}: {said}; {took} {gains}"


if __name__ == "__main__":
    main(sweep, rows_of, summary, mistake)
