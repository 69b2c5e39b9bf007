"""The budget over time: sums equal the fields, and known events are at their times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ladder
import pytest
from analysis.bundled import READABLE, analyze, name_of
from cases import all_cases
from reference import LAB_RUNS

import tcpwin
from tcpwin import _engine

DIRECTIONS = ("a_to_b", "b_to_a")
SCENARIOS = Path(__file__).parents[1] / "scenarios"
LADDERS = sorted(SCENARIOS.glob("*.ladder"))
MS = 1_000_000


def laddered(name: str, folder: Path) -> tcpwin.Connection:
    path = folder / f"{name}.pcap"
    ladder.parse((SCENARIOS / f"{name}.ladder").read_text(encoding="utf8"), name).write_pcap(path)
    return tcpwin.analyze(path).connections[0]


def compare(view: tcpwin.View, most: int) -> None:
    connection = view.connection
    for direction in DIRECTIONS:
        budget, fields = view.budget(direction=direction), getattr(connection, direction)
        told = {name: int(spent_ns.sum()) for name, spent_ns in budget.spent_ns.items()}
        assert told == {name: getattr(fields, f"budget_{name}_ns") for name in _engine.BUDGET_ITEMS}
        assert len(budget) <= most
        lengths_ns = budget.end_ns - budget.start_ns
        assert (sum(budget.spent_ns.values()) == lengths_ns).all()
        assert all((spent_ns >= 0).all() for spent_ns in budget.spent_ns.values())
        if len(budget):
            assert (lengths_ns > 0).all()
            assert (budget.start_ns[0], budget.end_ns[-1]) == (connection.start_ns, connection.end_ns)
            assert (budget.start_ns[1:] == budget.end_ns[:-1]).all()


@all_cases("buckets", [1024, 5])
@all_cases("path", READABLE, ids=name_of)
def test_sums_are_the_fields(path: Path, buckets: int) -> None:
    analysis = analyze(path)
    for view in analysis.views(range(len(analysis)), buckets=buckets):
        compare(view, buckets)


@all_cases("path", LADDERS, ids=lambda path: path.stem, of=3)
def test_sums_are_the_fields_of_each_ladder(path: Path, tmp_path: Path) -> None:
    ladder.parse(path.read_text(encoding="utf8"), path.stem).write_pcap(tmp_path / "ladder.pcap")
    analysis = tcpwin.analyze(tmp_path / "ladder.pcap")
    for view in analysis.views(range(len(analysis))):
        compare(view, 1024)


@all_cases("path", sorted(LAB_RUNS.glob("*/*.pcap.gz")), ids=lambda path: path.stem, of=6)
def test_sums_are_the_fields_of_the_labs_captures(path: Path) -> None:
    analysis = tcpwin.analyze(path)
    for view in analysis.views(range(min(len(analysis), 8))):
        compare(view, 1024)


def intervals(view: tcpwin.View, item: str, direction: str) -> list[tuple[int, int]]:
    """Return the times, since the connection's start, in which an item had all of the time; neighbours merged."""
    budget = view.budget(direction=direction)
    origin_ns = view.connection.start_ns
    found: list[tuple[int, int]] = []
    for start_ns, end_ns, spent_ns in zip(budget.start_ns, budget.end_ns, budget.spent_ns[item], strict=True):
        assert spent_ns in (0, end_ns - start_ns)
        if spent_ns:
            found.append((int(start_ns) - origin_ns, int(end_ns) - origin_ns))
    return found


@pytest.mark.parametrize(
    ("name", "item", "expected"),
    [
        ("budget-zero-window", "zero_window", [(200, 1200)]),
        ("budget-zero-window", "window_full", [(100, 200), (1200, 1300)]),
        ("budget-timeout", "timeout", [(100, 600)]),
        ("budget-idle-restart", "idle_restart", [(2000, 2100)]),
        ("budget-idle-restart", "application", [(300, 2000)]),
        ("budget-handshake", "handshake", [(0, 1100)]),
        ("budget-handshake", "slow_start", [(1100, 1200)]),
        ("budget-closed", "closed", [(200, 1300)]),
        ("budget-tail", "tail", [(200, 400)]),
    ],
)
def test_items_lie_where_they_happened(name: str, item: str, expected: list[tuple[int, int]], tmp_path: Path) -> None:
    """The ladders' steps give the times in milliseconds, their claims the durations."""
    connection = laddered(name, tmp_path)
    told = [(start_ns // MS, end_ns // MS) for start_ns, end_ns in intervals(connection.view(), item, "a_to_b")]
    assert told == expected


def test_zero_windows_of_a_slow_reader_are_the_episodes() -> None:
    [path] = [path for path in READABLE if path.name == "slow-reader.pcap.gz"]
    connection = analyze(path).connections[0]
    closed = [
        (episode.start_ns - connection.start_ns, episode.end_ns - connection.start_ns)
        for episode in connection.b_to_a.zero_window_episodes
    ]
    told = intervals(connection.view(buckets=1 << 16), "zero_window", "b_to_a")
    assert len(told) > 50
    assert set(told) <= set(closed)


def test_a_span_is_cut_out_of_the_whole() -> None:
    [path] = [path for path in READABLE if path.name == "zero-window-stall.pcap.gz"]
    connection = analyze(path).connections[0]
    third_ns = connection.duration_ns // 3
    start_ns, end_ns = connection.start_ns + third_ns, connection.start_ns + 2 * third_ns
    view = connection.view(start_ns, end_ns, buckets=1 << 16)
    for direction in DIRECTIONS:
        whole = connection.view(buckets=1 << 16).budget(direction=direction)
        part = view.budget(direction=direction)
        assert (int(part.start_ns[0]), int(part.end_ns[-1])) == (start_ns, end_ns)
        for item in _engine.BUDGET_ITEMS:
            assert pieces(part, item) == cut(pieces(whole, item), start_ns, end_ns)


def pieces(budget: Any, item: str) -> list[tuple[int, int]]:
    spans = zip(budget.start_ns.tolist(), budget.end_ns.tolist(), budget.spent_ns[item].tolist(), strict=True)
    return [(start_ns, end_ns) for start_ns, end_ns, spent_ns in spans if spent_ns]


def cut(spans: list[tuple[int, int]], start_ns: int, end_ns: int) -> list[tuple[int, int]]:
    both = [(max(first, start_ns), min(last, end_ns)) for first, last in spans]
    return [(first, last) for first, last in both if first < last]
