"""The fixture `run`: every capture of the lab at both ends, and the copies that the project holds."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from lab.runs import BUNDLED, ENDS, SCENARIOS, Run

HERE = Path(__file__).resolve().parent
COPIES = HERE.parents[1] / "captures" / "lab"
REFERENCE = [(scenario, end, None) for scenario in SCENARIOS for end in ENDS]
EVERY_RUN = [*REFERENCE, *BUNDLED]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "run" in metafunc.fixturenames:
        names = [f"{scenario}-{end}" + ("-copy" if copy else "") for scenario, end, copy in EVERY_RUN]
        metafunc.parametrize("run", EVERY_RUN, ids=names, indirect=True)


@pytest.fixture
def run(request: pytest.FixtureRequest) -> Run:
    """Return one capture with its truths; skip where reference captures are absent."""
    scenario, end, copy = request.param
    if copy:
        return read_run(scenario, end, HERE / "truth" / scenario, COPIES / f"{copy}.pcap.gz")
    folder = request.getfixturevalue("reference_captures") / "lab" / scenario
    return read_run(scenario, end, folder, folder / f"{end}.pcap.gz")


@cache
def read_run(scenario: str, end: str, truth: Path, capture: Path) -> Run:
    return Run(scenario, end, truth, capture)
