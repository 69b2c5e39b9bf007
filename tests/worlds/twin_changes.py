"""Accuracy of the model and the twin compared with changes on the true path: a table of tcpwin/docs/lab/twins.md.

Uses every second change of ``changes.jsonl``, run on the true path, and a receive buffer raised while the sender's
stays. Each world is captured at the sender; the capture alone gives the model's prediction, and a twin that runs
unchanged and with the change. Writes ``twin_changes.jsonl`` in this folder, or with ``--table`` prints its table. From
the folder ``tests``: ``python -m worlds.twin_changes FOLDER [--table]``; bundles in FOLDER are not run again.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from worlds import changes
from worlds.predictions import FAR
from worlds.truths import read_truths

import tcpwin
from tcpwin.lab import NetworkError, Scenario, ScenarioError, UmlError, read_scenario, run_scenario, world
from tcpwin.lab.lift import read_times
from tcpwin.lab.toml_text import render_toml
from tcpwin.lab.twin import run_twin
from tcpwin.paths import WhatIfError, fit_path, read_changes
from tcpwin.units import time_text

HERE = Path(__file__).resolve().parent
FILE = HERE / "twin_changes.jsonl"
LEFT = HERE.parent / "paths" / "send-buffer-left.zip"
EVERY = 2
"""Take every second change, and all that add losses."""


def of_worlds(folder: Path) -> Iterator[tuple[dict[str, Any], Path]]:
    """Yield changes of drawn worlds with their results, and the bundle of each world before them."""
    before = {truth.number: truth.result.base.completion_ns for truth in read_truths(changes.SEED)}
    lines = list(map(json.loads, changes.FILE.read_text().splitlines()))
    lossier = [line for line in lines if line["asked"][0] == "--loss" and line["asked"][1] != "0%"]
    for line in [*lines[::EVERY], *(each for each in lossier if each not in lines[::EVERY])]:
        scenario = world(changes.SEED, line["number"])
        bundle = run_scenario(scenario, "stock", folder / "worlds").bundle
        yield {"name": scenario.name, **line, "before_ns": before[line["number"]]}, bundle


def of_left(folder: Path) -> Iterator[tuple[dict[str, Any], Path]]:
    """Raise the receiver's buffer while the sender's stays at 60,000 bytes, then both, run here."""
    with zipfile.ZipFile(LEFT) as members:
        text = members.read("left12-base-stock/scenario.toml").decode()
    table = tomllib.loads(text)
    before_ns = _run_ns(read_scenario("left", text), folder)
    words: list[str] = []
    for end, setting in (("receiver", changes.RMEM), ("sender", changes.WMEM)):
        sizes = table[f"sysctl_{end}"][setting].split()
        table[f"sysctl_{end}"][setting] = f"{sizes[0]} {sizes[1]} {changes.LARGE}"
        words += ["--set", f"{end}.{setting.removeprefix('net.ipv4.')}={changes.LARGE}"]
        after_ns = _run_ns(read_scenario(f"left-with-{end}", render_toml(table)), folder)
        yield {"name": "send-buffer-left", "asked": [*words], "completion_ns": after_ns, "before_ns": before_ns}, LEFT


def _run_ns(scenario: Scenario, folder: Path) -> int:
    return read_times(run_scenario(scenario, "stock", folder / "worlds").bundle, scenario).completion_ns


def predicted(line: dict[str, Any], bundle: Path, folder: Path) -> dict[str, Any]:
    """Return one change with the model's and the twin's predictions and the result."""
    analysis = tcpwin.analyze(bundle, capture="sender.pcap.gz")
    connection = analysis.worst(1)[0]
    settings, more = changes.asked_of(line["asked"])
    row: dict[str, Any] = {**line, "model": None, "twin": None}
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
        twin = run_twin(analysis, connection, asked, folder / "twins", name=line["name"])
    except (ScenarioError, NetworkError, UmlError) as error:
        row["twin_unsaid"] = str(error)
        return row
    row["is_twin"] = twin.is_twin
    if twin.duration_ns is not None:
        row["twin"] = {"ns": round(twin.duration_ns.likely), "confidence": twin.confidence, "doubts": twin.doubts}
    return row


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return a line for each change whose prediction is missing or off by more than a tenth, and the totals."""
    lines = [
        "| capture | change | before | after | model | off by | confidence | twin | off by | confidence |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in (row for row in rows if not _is_close(row)):
        model, twin = row["model"], row["twin"]
        cells = [row["name"], f"`{' '.join(row['asked'])}`", time_text(row["before_ns"])]
        cells.append(time_text(row["completion_ns"]))
        cells += [time_text(model["ns"]), _off(model, row), model["confidence"]] if model else ["none", "", ""]
        refused = "no twin" if row.get("is_twin") is False else "none"
        cells += [time_text(twin["ns"]), _off(twin, row), twin["confidence"]] if twin else [refused, "", ""]
        lines.append(f"| {' | '.join(cells)} |")
    for who in ("model", "twin"):
        given = [row for row in rows if row[who]]
        far = [row for row in given if not 1 / FAR <= row[who]["ns"] / row["completion_ns"] <= FAR]
        unflagged = [row for row in far if row[who]["confidence"] == "likely"]
        trusted = [row for row in given if row[who]["confidence"] == "likely"]
        lines += [
            "",
            f"The {who} predicted {len(given)} of {len(rows)}, with a median error of {_median(given, who)}. "
            f"{len(trusted)} were likely, with a median error of {_median(trusted, who)}. "
            f"{len(far)} were off by a factor of more than {FAR}, {len(unflagged)} of them likely.",
        ]
    return "\n".join(lines)


def _is_close(row: dict[str, Any]) -> bool:
    predictions = (row["model"], row["twin"])
    return all(each and abs(each["ns"] / row["completion_ns"] - 1) <= 0.1 for each in predictions)


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
    rows: list[dict[str, Any]] = []
    for line, bundle in chain(of_left(given.folder), of_worlds(given.folder)):
        rows.append(predicted(line, bundle, given.folder))
        FILE.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        print(json.dumps(rows[-1]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
