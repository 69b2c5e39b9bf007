"""How close twins come to the captured connections: the table of tcpwin/docs/lab/twins.md.

Uses captures/runs, each from the sender's end with the settings of both hosts, and drawn worlds of seed 1, run in the
lab's kernel. Writes ``twins.jsonl`` in this folder, a line per capture, or with ``--table`` prints its table. From the
folder ``tests``: ``python -m worlds.twins FOLDER [--worlds N] [--table]``; bundles in FOLDER are judged and not run
again, and lines of other captures stay.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import tcpwin
from tcpwin.lab import (
    DEFAULT_SERIES,
    SERIES,
    NetworkError,
    ScenarioError,
    UmlError,
    run_scenario,
    scenario_like,
    series_like,
    story,
    world,
)
from tcpwin.limits import LIMIT_NAMES
from tcpwin.reference import Measured, against, measure_connection
from tcpwin.units import rate_text

HERE = Path(__file__).resolve().parent
FILE = HERE / "twins.jsonl"
RUNS = HERE.parents[1] / "captures" / "runs"
SEED = 1
CLOSE = 0.15
"""Largest deviation of a close twin, as a share of the original's throughput."""
ENDS = {"snd": "sender", "rcv": "receiver"}


def of_run(name: str) -> tcpwin.Analysis:
    """Analyse a run of captures/runs as a user would: a capture at the sender, and the settings of both hosts."""
    meta = json.loads((RUNS / name / "meta.json").read_text(encoding="utf8"))
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for end, label in ENDS.items():
            lines = [f"{key} = {value}" for key, value in meta["sysctls"][end].items() if "cannot stat" not in value]
            file = Path(folder) / f"{label}-sysctl.txt"
            file.write_text("\n".join([*lines, f"kernel.osrelease = {meta['kernel']}", ""]), encoding="utf8")
            files.append(file)
        return tcpwin.analyze(RUNS / name / "snd.pcap.gz", snapshots=files)


def originals(folder: Path, count: int, newer: int, only: str) -> Iterator[tuple[str, str, tcpwin.Analysis]]:
    """Yield name, content and analysis of each capture."""
    for run in sorted(RUNS.glob("*/meta.json")):
        if only in run.parent.name:
            yield run.parent.name, "kept run", of_run(run.parent.name)
    for series, many in ((SERIES[0], count), (SERIES[1], newer)):
        for number in range(many):
            scenario = world(SEED, number)
            name = scenario.name if series == DEFAULT_SERIES else f"{scenario.name} on {series}"
            if only in name:
                bundle = run_scenario(scenario, "stock", folder / "worlds", series=series).bundle
                yield name, story(SEED, number), tcpwin.analyze(bundle, capture="sender.pcap.gz")


def compare_with_twin(name: str, analysis: tcpwin.Analysis, folder: Path) -> dict[str, Any]:
    """Compare the worst connection with its twin."""
    chosen = analysis.worst(1)[0]
    try:
        scenario = scenario_like(analysis, name=name, connection=chosen)
    except ScenarioError as error:
        return {"refused": str(error)}
    captured = measure_connection(chosen)
    assert captured is not None
    series = series_like(chosen)
    try:
        bundle = run_scenario(scenario, "stock", folder / "twins", series=series).bundle
    except (NetworkError, UmlError) as error:
        return {"refused": str(error)}
    twin = measure_connection(tcpwin.analyze(bundle, capture="sender.pcap.gz").worst(1)[0])
    assert twin is not None
    return {
        "kernel": series,
        "captured": _facts(captured),
        "twin": _facts(twin),
        "is_twin": against(captured, twin).is_twin,
    }


def _facts(measured: Measured) -> dict[str, Any]:
    return {
        "goodput_bps": measured.goodput_bps and round(measured.goodput_bps),
        "limit": measured.limit,
        "second_limit": measured.second_limit,
        "window_max_bytes": measured.window_max_bytes,
        "flight_max_bytes": measured.flight_max_bytes,
    }


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return a line for each capture that was no twin, and the totals of all."""
    lines = [
        "| capture | content | throughput | limit | run's throughput | limit | off by |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in (row for row in rows if not row.get("is_twin")):
        if "refused" in row:
            lines.append(f"| {row['name']} | {row['what']} | | | {row['refused']} | | |")
            continue
        captured, twin = row["captured"], row["twin"]
        cells = (
            *(row["name"], row["what"], rate_text(captured["goodput_bps"]), _limits(captured)),
            *(rate_text(twin["goodput_bps"]), _limits(twin), f"{100 * (ratio_of(row) - 1):+.0f} %"),
        )
        lines.append(f"| {' | '.join(cells)} |")
    ran = [row for row in rows if "refused" not in row]
    close = sum(abs(ratio_of(row) - 1) <= CLOSE for row in ran)
    alike = sum(is_alike(row) for row in ran)
    unflagged = sum(row["is_twin"] and abs(ratio_of(row) - 1) > CLOSE for row in ran)
    lines += [
        "",
        f"{len(rows)} captures, {len(ran)} ran: {close} within 15 %, {alike} with the same limit, "
        f"{sum(row['is_twin'] for row in ran)} both; wrongly accepted as twins: {unflagged}.",
    ]
    return "\n".join(lines)


def _limits(facts: dict[str, Any]) -> str:
    named = (facts["limit"], facts["second_limit"])
    return " and ".join(LIMIT_NAMES[each] for each in named if each is not None)


def is_alike(row: dict[str, Any]) -> bool:
    """Return whether both have the same limit; if a verdict names two, either of them."""
    captured, twin = row["captured"], row["twin"]
    return twin["limit"] in (captured["limit"], captured["second_limit"]) or captured["limit"] == twin["second_limit"]


def ratio_of(row: dict[str, Any]) -> float:
    """Return the twin's throughput relative to the original's."""
    return float(row["twin"]["goodput_bps"] / row["captured"]["goodput_bps"])


def main(arguments: Sequence[str]) -> int:
    """Run what is missing, or print the table."""
    asked = argparse.ArgumentParser(prog="worlds.twins")
    asked.add_argument("folder", type=Path, help="for the bundles")
    asked.add_argument("--worlds", type=int, default=40, help="how many of the drawn worlds")
    asked.add_argument("--newer", type=int, default=20, help="how many of them on the newer Linux as well")
    asked.add_argument("--only", default="", help="captures with this in their names")
    asked.add_argument("--table", action="store_true", help="of what ran")
    given = asked.parse_args(arguments)
    there = {row["name"]: row for row in map(json.loads, FILE.read_text().splitlines())} if FILE.exists() else {}
    if given.table:
        print(table([row for name, row in there.items() if given.only in name]))
        return 0
    for name in ("worlds", "twins"):
        (given.folder / name).mkdir(parents=True, exist_ok=True)
    for name, what, analysis in originals(given.folder, given.worlds, given.newer, given.only):
        there[name] = {"name": name, "what": what, **compare_with_twin(name, analysis, given.folder)}
        FILE.write_text("".join(f"{json.dumps(row)}\n" for row in there.values()))
        print(json.dumps(there[name]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
