"""The page of a data set agrees with `tcpwin fleet show`."""

import json
from html import unescape
from pathlib import Path

import pytest
from cli.command import TEXT
from fleet.sets import LAB, run_fleet, tcpwin
from web.conftest import MakeClient


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet") / "set"
    run_fleet(LAB, TEXT, "-o", folder, status=3, starts=True)
    return folder


def test_the_page_agrees_with_the_command(make_client: MakeClient, dataset: Path) -> None:
    shown = json.loads(tcpwin("fleet", "show", dataset, "--json").stdout)
    client = make_client(fleet=dataset)
    text = unescape(client.get("/fleet").text)
    assert f"{shown['totals']['connections']:,} connections, {shown['totals']['problems']:,} with a problem" in text
    assert shown["worst"]
    for row in shown["worst"]:
        assert row["text"] in text
    for row in shown["unreadable"]:
        assert row["error"] in text
    for group, rows in shown["limits"].items():
        page = unescape(client.get(f"/fleet?by={group}").text)
        assert all(str(row[group]) in page for row in rows if group != "limit" and row[group] is not None)
    assert client.get("/fleet?by=nonsense").status_code == 422
    assert 'href="/fleet"' in client.get("/").text


def test_without_a_data_set_a_sentence_says_so(make_client: MakeClient, tmp_path: Path) -> None:
    answer = make_client(fleet=tmp_path / "none").get("/fleet")
    assert (answer.status_code, "not a data set of" in unescape(answer.text)) == (503, True)
