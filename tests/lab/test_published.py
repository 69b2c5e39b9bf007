"""The published matrix as run in the lab: data, the page's tables, and the article's pattern."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from cases import all_cases

from tcpwin.lab import scenarios

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tcpwin" / "reference" / "data"
PAGE = (ROOT / "tcpwin" / "docs" / "lab" / "published.md").read_text(encoding="utf8")
COUNTERS = ("TcpExtPruneCalled", "TcpExtTCPRcvCollapsed", "TcpExtTCPRcvQDrop", "TcpExtTCPOFODrop")
PRUNED, COLLAPSED, DROPPED, _ = COUNTERS
ROUND_TRIPS = {"300ms": "300ms", "20ms": "20ms", "0ms": "0.3ms"}
WORKLOADS = ("oscil", "bulk")


def runs() -> dict[str, dict[str, Any]]:
    """Return every run by scenario and kernel, such as ``oscil-300ms-170p2-stock``."""
    found = {}
    for workload in WORKLOADS:
        for name, file in ROUND_TRIPS.items():
            data = tomllib.loads((DATA / f"lab-{workload}-{file}.toml").read_text(encoding="utf8"))
            found |= {f"{workload}-{name}-{run['name']}": {**data["all"], **run} for run in data["runs"]}
    return found


RUNS = runs()


def test_the_whole_matrix_was_run() -> None:
    published = {f"{each.name}-{kernel}" for each in scenarios() if "published" in each.sets for kernel in each.kernels}
    assert RUNS.keys() == published
    assert len(RUNS) == 60


@all_cases("name", [name for name in RUNS if name.startswith("oscil-300ms")])
def test_the_signs_are_the_articles(name: str) -> None:
    """Stock collapses under +2, +3 and +4; patched drops there; neither happens at −2 and +1."""
    counters = RUNS[name]["counters"]
    overflows = name.split("-")[2] in ("170p2", "146p3", "137p4")
    is_stock = name.endswith("stock")
    assert (counters[COLLAPSED] > 0) == (overflows and is_stock)
    assert (counters[PRUNED] > 0) == (overflows and is_stock)
    assert (counters[DROPPED] > 0) == (overflows and not is_stock)


@all_cases("name", RUNS)
def test_patched_never_collapses_and_stock_never_drops(name: str) -> None:
    assert RUNS[name]["counters"][DROPPED if name.endswith("stock") else COLLAPSED] == 0


@all_cases("name", [name for name in RUNS if name.startswith("bulk")])
def test_a_bulk_transfer_shows_none_of_it(name: str) -> None:
    assert set(RUNS[name]["counters"].values()) == {0}
    assert RUNS[name]["throughput_mbps"] == [[941, 941]]


def rows(rtt: str) -> list[list[str]]:
    section = PAGE.partition(f"## Oscillating reader, {rtt[:-2]} ms\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if re.match(r"\| \d", line)]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@all_cases("rtt", ROUND_TRIPS)
def test_the_page_has_the_datas_numbers(rtt: str) -> None:
    table = rows(ROUND_TRIPS[rtt])
    assert len(table) == 10
    for setting, kernel, *counts, rates, _, _ in table:
        mib, scale = setting.split("/")
        name = f"oscil-{rtt}-{mib}{'m' if scale[0] == '-' else 'p'}{scale[1:]}-{kernel}"
        run = RUNS[name]
        numbers = [int(cell.split(" ")[0].replace(",", "")) for cell in counts]
        assert numbers == [run["counters"][counter] for counter in COUNTERS], name
        loops = [[int(number) for number in loop.split("–")] for loop in rates.split(" / ")]
        assert [[loop[0], loop[-1]] for loop in loops] == run["throughput_mbps"], name
