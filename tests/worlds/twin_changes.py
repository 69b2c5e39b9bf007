"""How near the model and the twin come to changes that were run on the true path: a table of tcpwin/docs/lab/twins.md.

In: every other change of ``changes.jsonl``, of drawn worlds whose true paths ran with it. Each world is captured at the
sender; its capture alone makes the model's prediction, and a twin that runs as it was and with the change. Out:
``twin_changes.jsonl`` beside this file, or with ``--table`` its tables. From the folder ``tests``:
``python -m worlds.twin_changes FOLDER [--table]``; what is in FOLDER is not run again.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from worlds import changes
from worlds.predictions import FAR
from worlds.truths import read_truths

import tcpwin
from tcpwin.lab import NetworkError, ScenarioError, UmlError, run_scenario, run_twin, world
from tcpwin.paths import WhatIfError, fit_path, read_changes
from tcpwin.units import time_text

HERE = Path(__file__).resolve().parent
FILE = HERE / "twin_changes.jsonl"
EVERY = 2
"""Of the changes: one in so many."""


def predicted(line: dict[str, Any], before_ns: int, folder: Path) -> dict[str, Any]:
    """One change: what the model says, what the twin says, and what came of it."""
    bundle = run_scenario(world(changes.SEED, line["number"]), "stock", folder / "worlds").bundle
    analysis = tcpwin.analyze(bundle, capture="sender.pcap.gz")
    connection = analysis.worst(1)[0]
    settings, more = changes.asked_of(line["asked"])
    row: dict[str, Any] = {**line, "before_ns": before_ns, "model": None, "twin": None}
    try:
        said = tcpwin.whatif(connection, settings, **more).prediction
        assert said is not None
        row["model"] = {"ns": round(said.duration_ns.likely), "confidence": said.confidence}
    except WhatIfError as error:
        row["model_unsaid"] = str(error)
    path = fit_path(connection)
    assert path is not None
    asked = read_changes(path, settings, **more)
    try:
        twin = run_twin(analysis, connection, asked, folder / "twins", name=world(changes.SEED, line["number"]).name)
    except (ScenarioError, NetworkError, UmlError) as error:
        row["twin_unsaid"] = str(error)
        return row
    row["is_twin"] = twin.is_twin
    if twin.duration_ns is not None:
        row["twin"] = {"ns": round(twin.duration_ns.likely), "confidence": twin.confidence, "doubts": twin.doubts}
    return row


def table(rows: Sequence[dict[str, Any]]) -> str:
    """A line a change, then what they come to."""
    lines = [
        "| world | change | was | came to | model | off by | said to be | twin | off by | said to be |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        model, twin = row["model"], row["twin"]
        cells = [str(row["number"]), f"`{' '.join(row['asked'])}`", time_text(row["before_ns"])]
        cells.append(time_text(row["completion_ns"]))
        cells += [time_text(model["ns"]), _off(model, row), model["confidence"]] if model else ["not said", "", ""]
        refused = "no twin" if row.get("is_twin") is False else "not said"
        cells += [time_text(twin["ns"]), _off(twin, row), twin["confidence"]] if twin else [refused, "", ""]
        lines.append(f"| {' | '.join(cells)} |")
    for who in ("model", "twin"):
        told = [row for row in rows if row[who]]
        far = [row for row in told if not 1 / FAR <= row[who]["ns"] / row["completion_ns"] <= FAR]
        unflagged = [row for row in far if row[who]["confidence"] == "likely"]
        trusted = [row for row in told if row[who]["confidence"] == "likely"]
        lines += [
            "",
            f"The {who}: {len(told)} of {len(rows)} said, median error {_median(told, who)}; {len(trusted)} of them "
            f"not flagged, median error {_median(trusted, who)}; off by more than {FAR}: {len(far)}, of these not "
            f"flagged: {len(unflagged)}.",
        ]
    return "\n".join(lines)


def _off(said: dict[str, Any], row: dict[str, Any]) -> str:
    return f"{100 * (said['ns'] / row['completion_ns'] - 1):+.0f} %"


def _median(rows: Sequence[dict[str, Any]], who: str) -> str:
    errors = [abs(row[who]["ns"] / row["completion_ns"] - 1) for row in rows]
    return f"{100 * statistics.median(errors):.1f} %" if errors else "–"


def main(arguments: Sequence[str]) -> int:
    """Run what is missing, or print the tables."""
    asked = argparse.ArgumentParser(prog="worlds.twin_changes")
    asked.add_argument("folder", type=Path, help="for the bundles")
    asked.add_argument("--table", action="store_true", help="of what ran")
    given = asked.parse_args(arguments)
    if given.table:
        print(table([json.loads(line) for line in FILE.read_text().splitlines()]))
        return 0
    for name in ("worlds", "twins"):
        (given.folder / name).mkdir(parents=True, exist_ok=True)
    before = {truth.number: truth.result.base.completion_ns for truth in read_truths(changes.SEED)}
    rows: list[dict[str, Any]] = []
    for line in list(map(json.loads, changes.FILE.read_text().splitlines()))[::EVERY]:
        rows.append(predicted(line, before[line["number"]], given.folder))
        FILE.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        print(json.dumps(rows[-1]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
