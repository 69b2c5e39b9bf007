"""Drawn worlds with a fault: the form of their truths, and verdicts at the client, in the middle and at the server."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from cases import all_cases
from reference import NO_RIGHT
from worlds.faults import POINTS, STORIES, rows_of, story, summary, sweep, world

HERE = Path(__file__).parent
KEPT = HERE / "captures" / "faults"
NUMBERS = sorted({int(path.name.split("-")[1]) for path in KEPT.glob("*.pcap.gz")})
SEED = 31


def lines_of(seed: int) -> list[str]:
    return (HERE / f"faults-{seed}.jsonl").read_text().splitlines()


@all_cases(("seed", "count"), [(SEED, 48), (32, 30)])
def test_every_truth_is_of_a_world_that_is_drawn_again(seed: int, count: int) -> None:
    lines = [json.loads(line) for line in lines_of(seed)]
    assert [line["number"] for line in lines] == list(range(count))
    for line in lines:
        assert line["story"] == story(seed, line["number"])
        assert set(line["lifts"]) == set(world(seed, line["number"]).lifts)
    assert {line["story"] for line in lines} == set(STORIES)


@all_cases("number", NUMBERS)
def test_the_same_answer_at_the_client_in_the_middle_and_at_the_server(number: int, tmp_path: Path) -> None:
    """As `python -m worlds.faults score` reads them."""
    folder = tmp_path / f"{SEED}-{number:03d}"
    folder.mkdir()
    for point in POINTS:
        shutil.copy(KEPT / f"{SEED}-{number:03d}-{point}.pcap.gz", folder / f"{point}.pcap")
    rows = list(rows_of(tmp_path, [lines_of(SEED)[number]]))
    assert [row.point for row in rows] == list(POINTS)
    said = [(row.verdict.limit, row.verdict.owner, row.verdict.fix) for row in rows]
    assert all(row.is_right and row.is_owner_right and row.is_fix_right for row in rows), (said, rows[0].alike)
    assert summary(rows).count("1 (100 %)") == 3 * len(POINTS)


@pytest.mark.nightly
def test_a_world_is_run_in_namespaces(tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip(f"{NO_RIGHT} make namespaces")
    number = next(number for number in range(len(STORIES)) if story(SEED, number) == "outage")
    sweep(SEED, [number], tmp_path)
    rows = list(rows_of(tmp_path, (tmp_path / "worlds.jsonl").read_text().splitlines()))
    assert all(row.is_right and row.is_owner_right for row in rows), [row.verdict.limit for row in rows]
