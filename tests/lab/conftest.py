"""The fixture `run`, by (scenario, end, name of a copy): a capture of the lab with its truths."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from lab.runs import Run
from reference import LAB_RUNS

HERE = Path(__file__).resolve().parent
COPIED_CAPTURES = HERE.parents[1] / "captures" / "lab"


@pytest.fixture
def run(request: pytest.FixtureRequest) -> Run:
    """Return one capture with its truths."""
    scenario, end, copy = request.param
    if copy:
        return read_run(scenario, end, HERE / "truth" / scenario, COPIED_CAPTURES / f"{copy}.pcap.gz")
    folder = LAB_RUNS / scenario
    return read_run(scenario, end, folder, folder / f"{end}.pcap.gz")


@cache
def read_run(scenario: str, end: str, truth: Path, capture: Path) -> Run:
    """Make one object a capture, so that the tests of a file share what it has read."""
    return Run(scenario, end, truth, capture)
