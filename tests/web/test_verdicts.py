"""Lists, filters, badges, pages and the API's rows show the library's verdict."""

import html
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from spread import some_by_day
from web.crafted import API, CLIENT, SERVER, analysed, segment, settle, written, zero_window_connection

import tcpwin
from tcpwin.limits import LIMIT_NAMES, LIMITS, VERDICT_FIELDS, Severity, algorithms_of
from tcpwin.render import verdict_row
from tcpwin.units import time_text
from tcpwin_web import Settings, create_app
from tcpwin_web.results import layout

CAPTURES = Path(__file__).parents[2] / "captures"
BUNDLED = (
    "lab/zero-window-stall.pcap.gz",
    "lab/no-window-scaling.pcap.gz",
    "lab/window-scaling.pcap.gz",
    "lab/loss-1-percent.pcap.gz",
    "wild/http-download.pcapng",
    "wild/aborted-by-reader.pcapng",
    "wild/many-short.pcap.gz",
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    app = create_app(Settings(data=tmp_path_factory.mktemp("data"), workers=2))
    with TestClient(app, base_url="http://localhost") as client:
        yield client


def words(client: TestClient, path: str) -> str:
    page = client.get(path)
    assert page.status_code == 200, page.text
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", page.text)))


def rows_of(client: TestClient, id: str, **query: Any) -> list[dict[str, Any]]:
    answer = client.get(f"{API}/captures/{id}/connections", params=query)
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.json()["connections"]
    return rows


@pytest.mark.parametrize("name", some_by_day(BUNDLED, of=4))
def test_everything_says_the_verdict_of_the_library(served: TestClient, name: str) -> None:
    path = CAPTURES / name
    analysis = tcpwin.analyze(path)
    id = analysed(served, path.read_bytes(), path.name)
    rows = rows_of(served, id)
    assert len(rows) == len(analysis)
    for row in rows:
        verdict = analysis.connections[row["id"]].verdict
        assert row["verdict"] == {each: getattr(verdict, each) for each in VERDICT_FIELDS}
    problems = [row["id"] for row in rows if row["verdict"]["is_problem"]]
    assert problems == list(analysis.problems)
    assert [row["id"] for row in rows[: len(problems)]] == problems
    assert [row["id"] for row in rows_of(served, id, problem=True)] == problems
    for limit in {row["verdict"]["limit"] for row in rows}:
        expected = [row["id"] for row in rows if row["verdict"]["limit"] == limit]
        assert [row["id"] for row in rows_of(served, id, limited_by=limit)] == expected
        page = served.get(f"/captures/{id}", params={"limited_by": limit}).text
        assert page.count("<tr data-href=") == len(expected)

    for row in rows[:5]:
        # The path's figure comes first if the path or its losses are the limit.
        page = served.get(f"/captures/{id}/connections/{row['id']}").text
        checked = re.findall(r'name="panel" value="([a-z-]+)"[^>]* checked', page)
        assert checked
        assert ("path" in checked) is (row["verdict"]["limit"] in ("path_rate", "path_policer", "path_loss"))
        assert (">congestion control<" in page) is any(
            each for each in algorithms_of(analysis.connections[row["id"]]).values()
        )

    worst = analysis.verdict
    entry = served.get(f"{API}/captures/{id}").json()
    assert {**entry["verdict"], "text": worst.text} == {each: getattr(worst, each) for each in entry["verdict"]}
    assert entry["problems"] == len(problems)
    capture, connection = words(served, f"/captures/{id}"), words(served, f"/captures/{id}/connections/{rows[0]['id']}")
    first = verdict_row(rows[0]["verdict"])
    badge = f"{first.problem} " if first.is_elsewhere else ""
    assert f"{first.limits} {badge}{first.share or '–'} {first.confidence} {first.cost or '–'}" in capture
    assert worst.answer in capture if len(analysis) == 1 else f"{worst.share * 100:.0f} %" in capture
    shown = analysis.connections[rows[0]["id"]].verdict
    assert shown.answer in connection
    said = shown.beside_text or f": {shown.cost_text}."
    assert (said in connection and time_text(shown.named_ns) in said) == shown.is_problem
    badges = re.findall(r'<span class="badge ([a-z]+)">([^<]*)</span>', served.get(f"/captures/{id}").text)
    assert (badges[0] == ("problem", verdict_row(entry["verdict"]).problem)) == bool(problems)
    # A damaged capture, or one with a finding that fails `check`, is never shown as healthy.
    worst_finding = analysis.findings.worst
    warned = worst_finding is not None and worst_finding >= Severity.WARNING
    assert (badges[0] == ("good", "no TCP problem")) == (not problems and not analysis.capture.warnings and not warned)
    assert (badges[0] == ("warning", "warning")) == (not problems and not analysis.capture.warnings and warned)


def test_a_closed_window_is_the_servers_reader(served: TestClient) -> None:
    """For 2.5 s of 3 s the server's window was 0 and the client had more to send."""
    packets = zero_window_connection()[:7]
    packets += [
        segment(2.9, CLIENT, "A", 3000, 5000, window=8000, length=1000),
        segment(2.9, CLIENT, "PA", 4000, 5000, window=8000, length=1000),
        segment(3.0, SERVER, "A", 5000, 5000, window=2000),
    ]
    id = analysed(served, written(packets))
    (row,) = rows_of(served, id, where=["verdict.is_problem=true", "verdict.share>0.8"])
    verdict = row["verdict"]
    assert (verdict["limit"], verdict["owner"], verdict["side"]) == (
        "receiver_application",
        "server_application",
        "server",
    )
    # Closed for 2.5 s; full from 0.2 s on before that, and until 3.0 s at most afterwards.
    assert 2_500_000_000 <= verdict["cost_ns"] <= 2_800_000_000
    assert rows_of(served, id, problem=False) == []
    assert rows_of(served, id, limited_by="path_loss") == []
    assert served.get(f"{API}/captures/{id}/connections", params={"limited_by": "nothing"}).status_code == 422


def test_each_machine_name_has_words() -> None:
    assert set(LIMIT_NAMES) == set(LIMITS)


def test_results_of_an_earlier_version_are_recomputed(tmp_path: Path, capture: bytes) -> None:
    settings = Settings(data=tmp_path, workers=1)
    with TestClient(create_app(settings), base_url="http://localhost") as client:
        id = analysed(client, capture)
    (database,) = tmp_path.glob("*.sqlite3")
    with sqlite3.connect(database) as rows:
        rows.execute("UPDATE captures SET results_version = NULL, verdict = NULL, problems = NULL")
    (found,) = tmp_path.glob(f"**/{id}/{layout.CONNECTIONS}")
    found.write_bytes(b"of an earlier version")
    with TestClient(create_app(settings), base_url="http://localhost") as client:
        entry = settle(client, id)
        assert (entry["status"], entry["problems"]) == ("done", 0)
        assert rows_of(client, id)[0]["verdict"]["limit"] == entry["verdict"]["limit"]
    assert len(zero_window_connection()) == entry["packets"]
