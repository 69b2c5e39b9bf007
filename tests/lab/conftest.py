"""The fixture `run`: every capture of the lab at both ends, and the copies that the project holds."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from lab.runs import BUNDLED, CUT_COPIES, ENDS, SCENARIOS, Run

HERE = Path(__file__).resolve().parent
COPIES = HERE.parents[1] / "captures" / "lab"
REFERENCE = [(scenario, end, None) for scenario in SCENARIOS for end in ENDS]
EVERY_RUN = [*REFERENCE, *BUNDLED]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for name, ends in (("run", ENDS), ("sender_run", ["snd"]), ("receiver_run", ["rcv"])):
        if name in metafunc.fixturenames:
            runs = [each for each in EVERY_RUN if each[1] in ends]
            ids = [f"{scenario}-{end}" + ("-copy" if copy else "") for scenario, end, copy in runs]
            metafunc.parametrize(name, runs, ids=ids, indirect=True)


@pytest.fixture
def run(request: pytest.FixtureRequest) -> Run:
    """Return one capture with its truths; skip where reference captures are absent."""
    return find_run(request)


@pytest.fixture
def sender_run(request: pytest.FixtureRequest) -> Run:
    """Return the same, of captures at the sender's end only."""
    return find_run(request)


@pytest.fixture
def receiver_run(request: pytest.FixtureRequest) -> Run:
    """Return the same, of captures at the receiver's end only."""
    return find_run(request)


def find_run(request: pytest.FixtureRequest) -> Run:
    scenario, end, copy = request.param
    if copy:
        whole = copy not in CUT_COPIES
        return read_run(scenario, end, HERE / "truth" / scenario, COPIES / f"{copy}.pcap.gz", whole)
    folder = request.getfixturevalue("reference_captures") / "lab" / scenario
    return read_run(scenario, end, folder, folder / f"{end}.pcap.gz", True)


@cache
def read_run(scenario: str, end: str, truth: Path, capture: Path, whole: bool) -> Run:
    """Make one object a capture, so that the tests of a file share what it has read."""
    return Run(scenario, end, truth, capture, whole)
