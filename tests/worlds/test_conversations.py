"""Drawn conversations: the truths' form, and the verdict at the client, in the middle and at the server for some."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from worlds.conversations import POINTS, Row, rows_of

import tcpwin
from tcpwin.lab import Times, conversation, conversation_stories, conversation_story, lift_result, lifts_of

HERE = Path(__file__).parent
KEPT = HERE / "captures" / "conversations"
NUMBERS = sorted({int(path.name.split("-")[1]) for path in KEPT.glob("*.pcap.gz")})
SEED = 22


def lines_of(seed: int) -> list[str]:
    return (HERE / f"conversations-{seed}.jsonl").read_text().splitlines()


@pytest.mark.parametrize(("seed", "count"), [(SEED, 150), (23, 60), (24, 60), (25, 60)])
def test_every_truth_is_of_a_world_that_is_drawn_again(seed: int, count: int) -> None:
    lines = [json.loads(line) for line in lines_of(seed)]
    assert [line["number"] for line in lines] == list(range(count))
    for line in lines:
        assert line["story"] == conversation_story(seed, line["number"])
        assert set(line["lifts"]) == {lift.name for lift in lifts_of(conversation(seed, line["number"]))}
    assert {line["story"] for line in lines} == set(conversation_stories(seed))


def test_a_conversation_is_the_same_again_and_another_by_another_seed() -> None:
    assert conversation(SEED, 3).text == conversation(SEED, 3).text != conversation(SEED + 1, 3).text


@pytest.mark.parametrize("number", NUMBERS)
def test_the_same_answer_at_the_client_in_the_middle_and_at_the_server(number: int) -> None:
    line = json.loads(lines_of(SEED)[number])
    scenario = conversation(SEED, number)
    times = {name: Times(each) for name, each in line["lifts"].items()}
    result = lift_result(scenario, "stock", Times(line["base"]), times)
    rows: Sequence[Row] = [
        Row(line["story"], scenario.name, point, result, connection.verdict)
        for point in POINTS
        for connection in tcpwin.analyze(KEPT / f"{SEED}-{number:03d}-{point}.pcap.gz").connections
    ]
    assert len(rows) == len(POINTS)
    assert all(row.is_right for row in rows), [row.verdict.limit for row in rows]
    assert len({row.verdict.owner for row in rows}) == 1
    assert all(row.is_owner_right and row.is_fix_right for row in rows), [row.verdict.owner for row in rows]


def test_rows_are_judged_from_a_folder_of_captures(tmp_path: Path) -> None:
    """As `python -m worlds.conversations score` reads them."""
    folder = tmp_path / conversation(SEED, NUMBERS[0]).name
    folder.mkdir()
    for point in POINTS:
        shutil.copy(KEPT / f"{SEED}-{NUMBERS[0]:03d}-{point}.pcap.gz", folder / f"{point}.pcap")
    rows = list(rows_of(tmp_path, [lines_of(SEED)[NUMBERS[0]]]))
    assert [row.point for row in rows] == list(POINTS)
    assert all(row.is_right and row.is_owner_right and row.is_fix_right and row.is_near for row in rows)
