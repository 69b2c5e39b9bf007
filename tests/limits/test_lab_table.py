"""Limits of each lab run: the budget's largest item and the first finding against the table of causes.

Each capture is judged by packets alone and with snapshots of both hosts.
"""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest
from cases import all_cases
from lab.selection import COPIES, ENDS, SCENARIOS
from reference import LAB_RUNS
from stories.lab_table import RUNS, Blamed, Cell

import tcpwin
from tcpwin.limits import Connection, Severity

CELLS: tuple[Cell, ...] = tuple((end, told) for end in ENDS for told in (False, True))
CLEAN = [scenario for scenario in SCENARIOS if RUNS[scenario].is_clean]
EACH = pytest.mark.parametrize("scenario", SCENARIOS)
# By day the sender's packets alone, and the receiver's with snapshots.
EACH_CELL = pytest.mark.parametrize(
    "cell",
    [
        pytest.param(
            (end, told),
            id=f"{end}-{'snapshots' if told else 'packets'}",
            marks=() if told == (end == "rcv") else pytest.mark.nightly,
        )
        for end, told in CELLS
    ],
)
CAPTURES = Path(__file__).resolve().parents[2] / "captures" / "lab"
HOSTS = {"snd": "sender", "rcv": "receiver"}


@pytest.fixture(scope="module")
def settings_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for data that is only in meta.json."""
    return tmp_path_factory.mktemp("settings")


@pytest.fixture
def judged(scenario: str, cell: Cell, settings_folder: Path) -> tcpwin.Analysis:
    """Return the analysis of one capture of a run."""
    return _analyze(LAB_RUNS / scenario, cell, settings_folder)


@cache
def _analyze(folder: Path, cell: Cell, settings_folder: Path) -> tcpwin.Analysis:
    end, with_snapshots = cell
    return tcpwin.analyze(
        folder / f"{end}.pcap.gz", snapshots=_told(folder, settings_folder / folder.name) if with_snapshots else ()
    )


def _told(folder: Path, written: Path) -> list[tuple[str, Path]]:
    """Return the snapshots of both hosts: ss, nstat, sockstat, and settings and kernel from meta.json."""
    meta = json.loads((folder / "meta.json").read_text(encoding="utf8"))
    written.mkdir(exist_ok=True)
    told = []
    for end, host in HOSTS.items():
        settings, kernel = written / f"sysctl_{host}.txt", written / f"uname_{host}.txt"
        lines = [f"{name} = {value}" for name, value in meta["sysctls"][end].items() if "cannot stat" not in value]
        settings.write_text("\n".join(lines) + "\n", encoding="utf8")
        kernel.write_text(meta["kernel"] + "\n", encoding="utf8")
        files = [
            settings,
            kernel,
            folder / f"ss_{end}.txt",
            folder / f"nstat_{end}.csv",
            folder / f"sockstat_{end}.txt",
        ]
        told += [(host, file) for file in files]
    return told


def _data_of(analysis: tcpwin.Analysis) -> tuple[Connection, str]:
    """Return the connection with most data (iperf3 also has a control connection), and its direction."""
    ways = [(each, way) for each in analysis.connections for way in ("a_to_b", "b_to_a")]
    connection, way = max(ways, key=lambda pair: int(getattr(pair[0], pair[1]).unique_bytes))
    assert isinstance(connection, Connection)
    return connection, way


def test_the_table_has_all_runs() -> None:
    assert sorted(RUNS) == sorted(SCENARIOS)


def _expect_budget(scenario: str, cell: Cell, judged: tcpwin.Analysis) -> None:
    connection, way = _data_of(judged)
    row, budget = RUNS[scenario], connection.budget[way]
    item, group, _ = row.departs.get(cell, (row.item, row.group, ""))
    ranked = sorted(budget.items_ns, key=lambda name: -budget.items_ns[name])
    assert (ranked[0], budget.largest) == (item, group)
    if row.next_item is not None:
        assert ranked[1] == row.next_item


def _expect_first(scenario: str, cell: Cell, judged: tcpwin.Analysis) -> None:
    row = RUNS[scenario]
    found = [Blamed(each.code, each.owner, each.side) for each in judged.findings]
    expected = row.firsts.get(cell, row.top if cell[1] else row.alone or row.top)
    assert (found[0] if found else None) == expected


@EACH_CELL
@EACH
def test_the_budgets_largest_item_is_the_cause(scenario: str, cell: Cell, judged: tcpwin.Analysis) -> None:
    _expect_budget(scenario, cell, judged)


@EACH_CELL
@EACH
def test_the_first_finding_is_the_cause(scenario: str, cell: Cell, judged: tcpwin.Analysis) -> None:
    _expect_first(scenario, cell, judged)


@all_cases(("scenario", "end", "copy"), COPIES, ids=[copy for _, _, copy in COPIES])
def test_the_projects_copies_give_the_same_verdict(scenario: str, end: str, copy: str) -> None:
    analysis = tcpwin.analyze(CAPTURES / f"{copy}.pcap.gz")
    _expect_budget(scenario, (end, False), analysis)
    _expect_first(scenario, (end, False), analysis)


@EACH_CELL
@pytest.mark.parametrize("scenario", CLEAN)
def test_nothing_is_wrong_with_a_clean_run(scenario: str, cell: Cell, judged: tcpwin.Analysis) -> None:
    """Without loss or slow ends, findings are informational and cost nothing."""
    row = RUNS[scenario]
    expected = () if row.top is None else (row.top.code, *(() if cell[1] else row.besides))
    assert tuple(each.code for each in judged.findings) == expected
    assert all(each.severity is Severity.INFO and not each.cost_ns for each in judged.findings)


@EACH_CELL
@EACH
def test_costs_add_up_to_less_than_the_connection_lasted(scenario: str, cell: Cell, judged: tcpwin.Analysis) -> None:
    costs: dict[tuple[int, str | None], int] = defaultdict(int)
    for each in judged.findings:
        if each.connection is not None:
            costs[each.connection, each.direction] += each.cost_ns
    for (connection, _), cost_ns in costs.items():
        assert cost_ns < judged.connections[connection].duration_ns, (scenario, cell)
