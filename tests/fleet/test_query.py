"""A data set agrees with its captures; every example query of the page is run."""

from __future__ import annotations

import ipaddress
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from cli.command import CAPTURES, TEXT, refused
from fleet.sets import LAB, MANY, RUN, run_fleet, tcpwin
from hypothesis import given
from hypothesis import strategies as st

import tcpwin as library
from tcpwin.fleet import Dataset, asked
from tcpwin.limits import Connection

PAGE = (Path(library.__file__).parent / "docs" / "fleet.md").read_text(encoding="utf8")
QUESTIONS = {
    re.findall(r"\*\*([^*\n]+\?)\*\*", before)[-1]: after.partition("```")[0]
    for before, after in pairwise(PAGE.split("```sql\n"))
}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet") / "set"
    run_fleet(LAB, MANY, RUN, TEXT, "-o", folder, status=3)
    return folder


@pytest.fixture(scope="module")
def connections(dataset: Path) -> list[Connection]:
    """Return all connections by capture."""
    names = [Path(entry.name) for entry in Dataset.open(dataset).entries.values() if entry.error is None]
    found: list[Connection] = []
    for path in names:
        others = sorted(path.parent.glob("*_*.*")) if path.parent == RUN else []
        snapshots = [(each.stem.split("_")[1], each) for each in others if each.suffix in (".txt", ".csv")]
        found += library.analyze(path, snapshots=snapshots)
    return found


def answer(dataset: Path, query: str) -> list[dict[str, Any]]:
    done = tcpwin("fleet", "sql", dataset, query, "--json")
    assert done.returncode == 0, done.stderr.decode()
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


def of(connection: Connection, side: str | None, field: str) -> Any:
    """Return a field of a direction."""
    values = connection.analysis.connections.column(f"{side}.{field}")[connection.id]
    return None if values is np.ma.masked else values.item()


def limited(connections: list[Connection]) -> Iterator[tuple[Connection, str, str]]:
    """Return connections with a problem, and sender and receiver of the direction that has it."""
    for each in connections:
        if each.verdict.is_problem:
            is_there = each.verdict.direction == "a_to_b"
            ends = (each.a.address, each.b.address) if is_there else (each.b.address, each.a.address)
            yield each, *ends


def test_the_page_has_the_questions() -> None:
    assert list(QUESTIONS) == [
        "Which paths are the worst?",
        "What limits whom?",
        "How large are windows compared with what their paths need?",
        "Was it better before a change?",
        "Which hosts have a receive buffer too small for their delay?",
    ]


def test_the_worst_paths(dataset: Path, connections: list[Connection]) -> None:
    lost: dict[tuple[str, str], list[int]] = defaultdict(list)
    for each, sender, receiver in limited(connections):
        lost[sender, receiver].append(each.verdict.lost_ns)
    rows = answer(dataset, QUESTIONS["Which paths are the worst?"])
    assert {(row["sender"], row["receiver"]): row["connections"] for row in rows} == {
        pair: len(each) for pair, each in lost.items()
    }
    assert [row["lost_s"] for row in rows] == pytest.approx(sorted(sum(each) / 1e9 for each in lost.values())[::-1])


def test_what_limits_whom(dataset: Path, connections: list[Connection]) -> None:
    lost: dict[tuple[str, str, int, str], int] = defaultdict(int)
    for each, sender, receiver in limited(connections):
        place = (subnet(sender), subnet(receiver), each.b.port, each.verdict.also or each.verdict.limit)
        lost[place] += each.verdict.lost_ns
    rows = answer(dataset, QUESTIONS["What limits whom?"])
    answered = {(row["sender"], row["receiver"], row["server_port"], row["named"]): row["lost_s"] for row in rows}
    assert answered == pytest.approx({place: ns / 1e9 for place, ns in lost.items()})


def subnet(address: str) -> str:
    network = ipaddress.ip_network(f"{address}/{64 if ':' in address else 24}", strict=False)
    if network.version == 4:
        return str(network)
    groups = network.network_address.exploded.split(":")[:4]
    return ":".join(f"{int(each, 16):x}" for each in groups) + "::/64"


def test_windows_against_the_needs_of_their_paths(dataset: Path, connections: list[Connection]) -> None:
    times = [
        window / (rate_bps / 8 * each.path_rtt_ns / 1e9)
        for each in connections
        if Path(each.analysis.name).parent == LAB and each.path_rtt_ns
        for side in ("a_to_b", "b_to_a")
        if (rate_bps := of(each, side, "path_rate_bps")) and of(each, side, "payload_bytes") > 100_000
        if (window := of(each, side, "receive_window_max_bytes")) is not None
    ]
    rows = answer(dataset, QUESTIONS["How large are windows compared with what their paths need?"])
    (lab,) = [row for row in rows if row["site"] == "lab"]
    assert lab["directions"] == len(times) > 0
    assert lab["times_the_need"][1] == pytest.approx(median(times))


def test_before_and_after(dataset: Path, connections: list[Connection]) -> None:
    moment_ns = int(datetime(2026, 11, 21, 1, 30, tzinfo=UTC).timestamp()) * 10**9
    counts: dict[tuple[int, bool], list[bool]] = defaultdict(list)
    for each in connections:
        if each.verdict.direction is not None:
            counts[each.b.port, each.start_ns >= moment_ns].append(each.verdict.is_problem)
    rows = answer(dataset, QUESTIONS["Was it better before a change?"])
    answered = {(row["server_port"], row["is_after"]): (row["connections"], row["with_a_problem"]) for row in rows}
    assert answered == {place: (len(each), sum(each) / len(each)) for place, each in counts.items()}


def test_whose_receive_buffer_is_too_small(dataset: Path, connections: list[Connection]) -> None:
    windows: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for each, _, receiver in limited(connections):
        if (each.verdict.also or each.verdict.limit) == "receiver_window":
            windows[receiver].append(
                (of(each, each.verdict.direction, "receive_window_max_bytes"), each.path_rtt_ns or 0)
            )
    rows = answer(dataset, QUESTIONS["Which hosts have a receive buffer too small for their delay?"])
    assert rows
    assert {row["receiver"]: (row["connections"], row["window_bytes"]) for row in rows} == {
        host: (len(each), max(window for window, _ in each)) for host, each in windows.items()
    }
    for row in rows:
        assert row["rtt_ms"] == pytest.approx(median(rtt for _, rtt in windows[row["receiver"]]) / 1e6)


@given(st.ip_addresses())
def test_subnets_of_any_address(empty: Any, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    (answered,) = empty.execute("SELECT subnet(?)", [str(address)]).fetchone()
    assert answered == subnet(str(address))


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("fleet") / "set"
    run_fleet(TEXT, "-o", folder, status=3)
    with asked(Dataset.open(folder)) as database:
        yield database


def test_what_a_data_set_lacks_is_an_empty_table(empty: Any) -> None:
    for table in ("connections", "findings", "budgets", "events", "series", "directions"):
        assert empty.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
    assert empty.execute("SELECT a_to_b.payload_bytes, verdict.limit FROM connections").fetchall() == []


def test_show_prints_the_verdicts(dataset: Path, connections: list[Connection]) -> None:
    done = tcpwin("fleet", "show", dataset, "--json")
    assert done.returncode == 0
    answered = json.loads(done.stdout)
    troubled = [each for each in connections if each.verdict.is_problem]
    assert answered["totals"]["connections"] == len(connections)
    assert answered["totals"]["problems"] == len(troubled)
    lost_ns = sum(each.verdict.lost_ns for each in troubled)
    for group in ("limit", "pair", "subnet", "port", "hour", "day", "site", "kernel"):
        rows = answered["limits"][group]
        assert sum(row["connections"] for row in rows) == len(connections), group
        assert sum(row["lost_ns"] for row in rows) == lost_ns, group
    worst = max(troubled, key=lambda each: each.verdict.lost_ns)
    assert answered["worst"][0]["text"] == worst.verdict.text
    assert [each["name"] for each in answered["unreadable"]] == [str(TEXT)]
    text = tcpwin("fleet", "show", dataset, "--by", "port", "--by", "hour").stdout.decode()
    assert worst.verdict.text in text
    assert f"{len(troubled)} with a problem, 1 captures unreadable" in text


def test_sql_as_a_table_and_as_csv(dataset: Path) -> None:
    query = "SELECT site, count(*) AS captures, avg(packets) AS mean FROM captures GROUP BY 1 ORDER BY 1"
    lines = tcpwin("fleet", "sql", dataset, query).stdout.decode().splitlines()
    assert lines[0].split() == ["site", "captures", "mean"]
    assert len(lines) == 1 + 4
    table = tcpwin("fleet", "sql", dataset, query, "--csv").stdout.decode().splitlines()
    assert table[0] == "site,captures,mean"
    assert tcpwin("fleet", "sql", dataset, query, "--csv", "--limit", "1").stdout.decode().splitlines() == table[:2]
    cut = tcpwin("fleet", "sql", dataset, query, "--limit", 2).stdout.decode().splitlines()
    assert cut[-1].startswith("More rows are not shown")
    assert tcpwin("fleet", "sql", dataset, "SELECT 1 WHERE false", "--json").stdout == b"[]\n"


def test_an_invalid_query_gets_one_sentence(dataset: Path) -> None:
    assert "syntax error" in refused("fleet", "sql", dataset, "SELEC", status=2)
    assert "nothing" in refused("fleet", "sql", dataset, "SELECT nothing FROM captures", status=2)
    assert "not a data set" in refused("fleet", "sql", CAPTURES, "SELECT 1")
    assert "not a data set" in refused("fleet", "show", TEXT)
