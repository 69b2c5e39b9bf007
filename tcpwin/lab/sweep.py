"""Run many worlds, each unchanged and with each limit lifted: one JSON line per world.

In: a seed, a number of worlds, a folder. Out: in the folder ``worlds.jsonl``, ``scenarios`` (one TOML file per world),
``bundles`` (unchanged runs, with packets) and ``lifts`` (lifted runs, without). Worlds with a line and runs with a
bundle are not repeated, so an interrupted sweep resumes.
"""

from __future__ import annotations

import json
import threading
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcpwin.errors import TcpwinError
from tcpwin.lab.conversations import conversation, conversation_story
from tcpwin.lab.lift import LiftResult, Run, lift_scenario
from tcpwin.lab.run import run_scenario
from tcpwin.lab.scenario import Scenario
from tcpwin.lab.side_by_side import side_by_side
from tcpwin.lab.worlds import story, world
from tcpwin.output import append_whole, open_whole

SCHEMA = "tcpwin/worlds/1"
LINES = "worlds.jsonl"
_KERNEL = "stock"


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of random world: returns scenario and story by seed and number."""

    draw: Callable[[int, int], Scenario]
    story: Callable[[int, int], str]


FAMILIES = {"transfers": Family(world, story), "conversations": Family(conversation, conversation_story)}
_DRAWN = ("path", "host", "workload", "sysctl", "sysctl_sender", "sysctl_receiver")


def sweep(
    seed: int,
    numbers: Iterable[int],
    folder: Path,
    *,
    family: str = "transfers",
    jobs: int = 1,
    run: Run | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> int:
    """Run these worlds of a seed, and return how many failed.

    Args:
        family: a name of `FAMILIES`.
        jobs: worlds in parallel.
        say: called for each world.
    """
    for name in ("scenarios", "bundles", "lifts"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    lines = folder / LINES
    drawn_by = FAMILIES[family]
    there = {line["name"] for line in read_worlds(lines)} if lines.exists() else set()
    lock = threading.Lock()

    def one(number: int) -> bool:
        scenario = drawn_by.draw(seed, number)
        with open_whole(folder / "scenarios" / f"{scenario.name}.toml") as file:
            file.write(scenario.text)

        def place(each: Scenario, kernel: str, _: Path) -> Path:
            where = folder / ("bundles" if each.name == scenario.name else "lifts")
            return run(each, kernel, where) if run else run_scenario(each, kernel, where).bundle

        try:
            result = lift_scenario(scenario, _KERNEL, folder, run=place)
        except TcpwinError as error:
            # Write no line, so that the next sweep tries again.
            say(f"{scenario.name}: {error}")
            return False
        with lock:
            append_whole(lines, json.dumps(world_line(seed, number, result, drawn_by), ensure_ascii=False) + "\n")
        say(
            f"{scenario.name} ({drawn_by.story(seed, number)}): {result.base.completion_ns / 1e9:.2f} s, {result.limit}"
        )
        return True

    return side_by_side(
        one, [number for number in numbers if drawn_by.draw(seed, number).name not in there], jobs
    ).count(False)


def world_line(seed: int, number: int, result: LiftResult, family: Family) -> dict[str, Any]:
    """Return a world's record: its parameters, and the times of its runs."""
    found = result.document()
    return {
        "schema": SCHEMA,
        "seed": seed,
        "number": number,
        "name": found["scenario"],
        "story": family.story(seed, number),
        "drawn": drawn(result.scenario),
        **{key: found[key] for key in ("judged", "base", "lifts", "limit", "alike")},
    }


def drawn(scenario: Scenario) -> dict[str, Any]:
    """Return a world's parameters, by the tables of its scenario."""
    table = tomllib.loads(scenario.text)
    return {name: table.get(name, {}) for name in _DRAWN}


def read_worlds(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a sweep."""
    with path.open(encoding="utf8") as lines:
        return [json.loads(line) for line in lines]
