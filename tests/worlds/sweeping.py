"""Code shared by the sets of drawn worlds: drawing, resuming a run, and the table of right verdicts."""

from __future__ import annotations

import json
import math
import os
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

from tcpwin.limits import Verdict

LINES = "worlds.jsonl"


class Row(Protocol):
    """A world's verdict at one capture point."""

    @property
    def story(self) -> str: ...
    @property
    def point(self) -> str: ...
    @property
    def verdict(self) -> Verdict: ...
    @property
    def is_right(self) -> bool: ...
    @property
    def is_owner_right(self) -> bool: ...
    @property
    def is_fix_right(self) -> bool: ...


def between(drawn: random.Random, least: float, most: float) -> float:
    """Return a log-uniform random number with three digits."""
    number = math.exp(math.log(least) + drawn.random() * (math.log(most) - math.log(least)))
    return float(f"{number:.3g}")


def in_order(stories: Iterable[str], key: str, number: int) -> str:
    """Return the story of a world: each once per round, in a random order."""
    order = list(stories)
    random.Random(f"{key} {number // len(order)}").shuffle(order)
    return order[number % len(order)]


def apart(act: Callable[[], None]) -> None:
    """Run a function in a separate process."""
    number = os.fork()
    if not number:
        status = 1
        try:
            act()
            status = 0
        finally:
            os._exit(status)
    if os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]):
        raise OSError("a run failed")


def run_missing(numbers: Iterable[int], folder: Path, run: Callable[[int], dict[str, Any]], jobs: int) -> None:
    """Run the worlds that have no line in the folder, and append one for each."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / LINES
    there = {json.loads(line)["number"] for line in path.read_text().splitlines()} if path.exists() else set()

    def one(number: int) -> None:
        line = run(number)
        with path.open("a") as lines:
            lines.write(json.dumps({"number": number, **line}) + "\n")

    with ThreadPoolExecutor(jobs) as pool:
        for done in [pool.submit(one, number) for number in numbers if number not in there]:
            done.result()


def tabulate(rows: Sequence[Row], points: Iterable[str], **more: Callable[[Any], bool]) -> str:
    """Return a table: limit, owner and fix right, certain and wrong, and more columns, by capture point."""
    columns: dict[str, Callable[[Any], bool]] = {
        "right": lambda row: row.is_right,
        "owner right": lambda row: row.is_owner_right,
        "fix right": lambda row: row.is_fix_right,
        "certain and wrong": lambda row: not row.is_right and row.verdict.confidence == "certain",
        **{name.replace("_", " "): holds for name, holds in more.items()},
    }
    lines = [f"| captured at the | worlds | {' | '.join(columns)} |", "|---" * (2 + len(columns)) + "|"]
    for point in points:
        mine = [row for row in rows if row.point == point]
        counts = [sum(map(holds, mine)) for holds in columns.values()]
        cells = " | ".join(f"{count} ({100 * count / len(mine):.0f} %)" for count in counts)
        lines.append(f"| {point} | {len(mine)} | {cells} |")
    return "\n".join(lines)


def main(
    sweep: Callable[[int, Sequence[int], Path], None],
    rows_of: Callable[[Path, Sequence[str]], Iterator[Any]],
    summary: Callable[[Sequence[Any]], str],
    mistake: Callable[[Any], str | None],
) -> None:
    """Run or score, as the command line says. `mistake` describes a row that is not right."""
    command, *words = sys.argv[1:]
    folder = Path(words[-1])
    if command == "run":
        sweep(int(words[0]), range(int(words[1])), folder)
        return
    rows = list(rows_of(folder, (folder / LINES).read_text().splitlines()))
    sys.stdout.write(summary(rows) + "\n\n")
    sys.stdout.writelines(f"{words}\n" for words in map(mistake, rows) if words)
    sys.stdout.write(f"{Counter(row.story for row in rows if not row.is_right)}\n")
