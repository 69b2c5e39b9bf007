"""The library of runs: its grid, its shipped results, and their repetition in the lab's kernel."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest
from cli.command import tcpwin
from reference import NO_LAB

from tcpwin.errors import TcpwinError
from tcpwin.lab import (
    Outcome,
    Scenario,
    check_kernel,
    families,
    finish_library,
    library,
    read_scenario,
    run_scenario,
    sweep_library,
)
from tcpwin.reference import library as shipped

FILE = files("tcpwin.reference").joinpath("library.jsonl")
REPEATED = "start-20ms-300kb"


@pytest.fixture
def kernel() -> None:
    try:
        check_kernel()
    except TcpwinError:
        pytest.skip(NO_LAB)


def test_every_run_has_a_scenario() -> None:
    names = [run.name for run in library().values()]
    assert len(names) == len(set(names))
    for run in library().values():
        scenario = run.scenario()
        assert scenario.name == run.name
        assert read_scenario(run.name, scenario.text) == scenario
    assert {run.family for run in library().values()} == set(families())


def test_every_shipped_run_is_in_the_grid_and_in_its_order() -> None:
    place = {name: number for number, name in enumerate(library())}
    places = [place[name] for name in shipped()]
    assert places == sorted(places)
    assert {run.family for run in shipped().values()} == set(families())


def test_every_shipped_run_is_what_its_family_says() -> None:
    for run in shipped().values():
        assert run.goodput_low_bps <= run.goodput_bps <= run.goodput_high_bps
        assert run.goodput_bps <= run.path_rate_bps
        assert len(run.trace.time_ns) == len(run.trace.window_bytes) == len(run.trace.acked_bytes)
        assert run.trace.acked_bytes[-1] == pytest.approx(run.volume_bytes, rel=0.01)
        assert (run.loss_share is not None) is (run.family == "loss")
        assert (run.policer_bps is not None) is (run.family == "policer")


def test_the_page_says_how_many_runs_there_are() -> None:
    page = (Path(__file__).parents[2] / "tcpwin" / "docs" / "reference.md").read_text(encoding="utf8")
    assert f"ships {len(shipped()):,} runs made in its [lab]" in page


def test_a_full_path_gives_most_of_its_rate() -> None:
    """1448 of 1538 bytes of a frame are payload; slow start costs some of a transfer of 25 round trips."""
    for run in shipped().values():
        if run.family == "full" and run.limit == "path_rate":
            assert 0.3 < run.goodput_bps / run.path_rate_bps < 1.01 * 1448 / 1538


@pytest.mark.usefixtures("kernel")
def test_an_interrupted_sweep_continues_and_gives_the_shipped_results_again(tmp_path: Path) -> None:
    """Time in the lab is virtual: nothing depends on this machine.

    A guest that starts other programs starts the transfer at another nanosecond, which moves its end by less than a
    microsecond.
    """
    file = tmp_path / "runs.jsonl"
    ran: list[str] = []

    def run(scenario: Scenario, which: str, folder: Path) -> Outcome:
        ran.append(scenario.name)
        if len(ran) == 2:
            raise TcpwinError("interrupted")
        return run_scenario(scenario, which, folder)

    wanted = [library()["start-100ms-300kb"], library()[REPEATED]]
    assert sweep_library(wanted, file, run=run) == 1
    assert sweep_library(wanted, file, run=run) == 0
    assert ran == ["start-100ms-300kb", REPEATED, REPEATED]
    assert finish_library(file) == []
    lines = file.read_text("utf8").splitlines()
    assert [json.loads(line)["name"] for line in lines] == [REPEATED, "start-100ms-300kb"]
    once = {line["name"]: line for line in map(json.loads, FILE.read_text("utf8").splitlines())}
    for again in map(json.loads, lines):
        shipped_run = once[again["name"]]
        assert again["goodput_bps"] == pytest.approx(shipped_run["goodput_bps"], rel=1e-5)
        assert {**again, "goodput_bps": shipped_run["goodput_bps"]} == shipped_run


def test_a_run_that_something_else_limited_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    lines = [json.loads(line) for line in FILE.read_text("utf8").splitlines()[:3]]
    lines[1]["limit"] = "path_loss"
    file.write_text("".join(json.dumps(line) + "\n" for line in reversed(lines)))
    assert finish_library(file) == [lines[1]["name"]]
    kept = [json.loads(line)["name"] for line in file.read_text("utf8").splitlines()]
    assert kept == [lines[0]["name"], lines[2]["name"]]


def test_the_commands_name_what_is_unknown() -> None:
    def output(*arguments: str) -> str:
        done = tcpwin(*arguments)
        return (done.stdout + done.stderr).decode()

    assert "unknown family 'windows': choose from full" in output("lab", "library", "--family", "windows", "--list")
    assert "missing option -o FILE, or --list" in output("lab", "library")
    assert "did you mean window-200ms-1.5mbps" in output("lab", "show", "library/window-200ms-1.6mbps")
    assert output("lab", "library", "--family", "start", "--list").splitlines()[0] == "library/start-10ms-300kb"
    assert output("lab", "show", f"library/{REPEATED}") == library()[REPEATED].scenario().text
