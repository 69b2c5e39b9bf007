"""The accuracy page has the program's tables: the same configurations and causes."""

from __future__ import annotations

import re
import subprocess
import sys

from reference import ROOT
from simulator.segment import Cause
from simulator.table import HEADING, measure, render

PAGE = ROOT / "tcpwin" / "docs" / "accuracy.md"
NUMBER = re.compile(r"\d[\d,]*(\.\d+)?%?|–")


def skeleton(lines: list[str]) -> list[str]:
    """Return headings, column heads and row names: the tables without numbers."""
    shapes = []
    for line in lines:
        if line.startswith((HEADING, "| cause", "|---")):
            shapes.append(line)
        elif line.startswith("|"):
            shapes.append(line.split("|")[1].strip())
    return shapes


def test_the_page_has_the_tables_of_the_program() -> None:
    page = "".join(PAGE.read_text(encoding="utf8").partition(HEADING)[1:]).splitlines()
    printed = list(render(measure(2)))
    assert skeleton(page) == skeleton(printed)
    rows = [line for line in page if line.startswith("| `")]
    assert all(NUMBER.match(cell.strip()) for row in rows for cell in row.split("|")[2:-1])


def test_the_page_explains_every_cause() -> None:
    page = PAGE.read_text(encoding="utf8")
    before_tables = page.partition(HEADING)[0]
    assert [cause for cause in (*Cause, "spurious", "out_of_order") if f"`{cause}`" not in before_tables] == []


def test_the_program_prints_the_same_tables_again() -> None:
    command = [sys.executable, "-m", "simulator.table", "--runs", "2"]
    first, second = (
        subprocess.run(command, cwd=ROOT / "tests", check=True, capture_output=True, text=True).stdout for _ in range(2)
    )
    assert first == second
    assert skeleton(first.splitlines())
