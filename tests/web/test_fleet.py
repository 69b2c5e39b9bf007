"""The page of a data set says what `tcpwin fleet show` says of it."""

import json
from html import unescape
from pathlib import Path

import httpx2
import pytest
from cli.command import TEXT
from fleet.sets import LAB, run_fleet, tcpwin
from web.running import MakeServer


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet") / "set"
    run_fleet(LAB, TEXT, "-o", folder, status=3)
    return folder


def test_the_page_says_what_the_command_says(make_server: MakeServer, dataset: Path) -> None:
    told = json.loads(tcpwin("fleet", "show", dataset, "--json").stdout)
    _, address = make_server(TCPWIN_FLEET=str(dataset))
    with httpx2.Client(base_url=address, timeout=None) as client:
        text = unescape(client.get("/fleet").text)
        assert f"{told['totals']['connections']:,} connections, {told['totals']['problems']:,} with a problem" in text
        assert told["worst"]
        for row in told["worst"]:
            assert row["text"] in text
        for row in told["unreadable"]:
            assert row["error"] in text
        for group, rows in told["limits"].items():
            page = unescape(client.get(f"/fleet?by={group}").text)
            assert all(str(row[group]) in page for row in rows if group != "limit" and row[group] is not None)
        assert client.get("/fleet?by=nonsense").status_code == 422
        assert 'href="/fleet"' in client.get("/").text


def test_without_a_data_set_a_sentence_says_so(make_server: MakeServer, tmp_path: Path) -> None:
    _, address = make_server(TCPWIN_FLEET=str(tmp_path / "none"))
    answer = httpx2.get(f"{address}/fleet", timeout=None)
    assert (answer.status_code, "no data set of" in unescape(answer.text)) == (503, True)
