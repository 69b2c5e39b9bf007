"""Accuracy of predicted changes compared with runs: the tables of tcpwin/docs/whatif.md.

Takes a folder of bundles of seed 1, like `worlds.score`; lifts are in ``seed-1.jsonl``, other changes in
``changes.jsonl`` in this folder. From the folder ``tests``: ``python -m worlds.predictions FOLDER``.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from worlds.changes import FILE, SEED, asked_of
from worlds.truths import read_truths

import tcpwin
from tcpwin.lab import world
from tcpwin.paths import Prediction, WhatIfError

FAR = 1.5
"""A prediction off by more is wrong, and should have been flagged."""
MATTERS = 0.1
"""Share of the time: smaller changes are easily predicted."""
NOT_ASKED = ("cross_traffic",)
"""Lifts that no user can ask for: one capture shows no second flow."""


@dataclass(frozen=True)
class Row:
    """A prediction and its run; None if the capture was insufficient."""

    kind: str
    before_ns: int
    true_ns: int
    predicted: Prediction | None

    @property
    def ratio(self) -> float:
        """Return predicted ÷ true."""
        return self.predicted.duration_ns.likely / self.true_ns if self.predicted else 1.0

    @property
    def is_far(self) -> bool:
        """Return whether it is off by more than `FAR`."""
        return not 1 / FAR <= self.ratio <= FAR

    @property
    def is_flagged(self) -> bool:
        """Return whether it was reported as only possible."""
        return self.predicted is not None and self.predicted.confidence == "possible"


class _Worlds:
    def __init__(self, folder: Path, end: str) -> None:
        self.folder, self.end = folder, end

    @cache  # noqa: B019
    def connection(self, number: int) -> tcpwin.Connection:
        """Return the transfer of a world."""
        bundle = self.folder / f"{world(SEED, number).name}-stock.zip"
        analysis = tcpwin.analyze(bundle, capture=f"{self.end}.pcap.gz")
        return max(analysis.connections, key=lambda each: each.b_to_a.unique_bytes)

    def lifts(self) -> Iterable[Row]:
        """Return every limit of every world lifted alone."""
        for truth in read_truths(SEED):
            for gain in truth.result.gains:
                if gain.lift.name in NOT_ASKED:
                    continue
                try:
                    predicted = tcpwin.whatif(self.connection(truth.number), lift=[gain.lift.limit]).prediction
                except WhatIfError:
                    predicted = None
                before_ns = truth.result.base.completion_ns
                yield Row(gain.lift.name, before_ns, gain.times.completion_ns, predicted)

    def changes(self) -> Iterable[Row]:
        """Return every other change that was run."""
        truths = {truth.number: truth.result.base.completion_ns for truth in read_truths(SEED)}
        for line in map(json.loads, FILE.read_text().splitlines()):
            settings, more = asked_of(line["asked"])
            option, value = line["asked"][:2]
            try:
                predicted = tcpwin.whatif(self.connection(line["number"]), settings, **more).prediction
            except WhatIfError:
                predicted = None
            kind = f"{option} {value.partition('=')[0]}" if option == "--set" else option
            yield Row(kind, truths[line["number"]], line["completion_ns"], predicted)


def table(rows: Sequence[Row]) -> str:
    """Return by kind: number, median error, off by more than 1.5 with and without a flag, within the interval."""
    lines = [
        "| change | runs | not said | median error | where it moved the time by a tenth | off by more than 1.5 "
        "| of these not flagged | within the interval |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kind in [*dict.fromkeys(row.kind for row in rows), "all"]:
        mine = [row for row in rows if kind in (row.kind, "all")]
        known = [row for row in mine if row.predicted is not None]
        moved = [row for row in known if abs(row.true_ns / row.before_ns - 1) > MATTERS]
        far = [row for row in known if row.is_far]
        within = sum(row.predicted.duration_ns.low <= row.true_ns <= row.predicted.duration_ns.high for row in known)  # type: ignore[union-attr]
        cells = (
            f"`{kind}`" if kind != "all" else "all",
            len(mine),
            len(mine) - len(known),
            _median(known),
            f"{_median(moved)} of {len(moved)}" if moved else "none did",
            len(far),
            sum(not row.is_flagged for row in far),
            f"{100 * within / len(known):.0f} %",
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def _median(rows: Sequence[Row]) -> str:
    return f"{100 * statistics.median([abs(row.ratio - 1) for row in rows]):.1f} %"


def main(arguments: Sequence[str]) -> int:
    """Print the tables of both ends."""
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        sys.stderr.write("worlds.predictions: name the folder of bundles\n")
        return 2
    for end in ("sender", "receiver"):
        worlds = _Worlds(Path(arguments[0]), end)
        for name, rows in (("Limits lifted", worlds.lifts()), ("Other changes", worlds.changes())):
            sys.stdout.write(f"\n{name}, captured at the {end}\n\n{table(list(rows))}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
