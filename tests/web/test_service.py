"""The service's answers: its API, its pages, its errors and its headers."""

import base64
import html
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from fastapi.testclient import TestClient

import tcpwin
from tcpwin_web import create_app
from tcpwin_web.server import main

PAGE = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
HOSTILE = "script-alert-1-script"
FIGURE = "/api/v1/captures/zero-window/connections/0/figure"


def test_health(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}


def test_captures_are_listed_by_id_and_other_files_are_not(client: TestClient, captures: Path) -> None:
    listed = client.get("/api/v1/captures").json()["captures"]
    assert {each["id"]: each["name"] for each in listed} == {
        "zero-window": "Zero Window.pcap",
        "nonsense": "nonsense.pcap",
        HOSTILE: "<script>alert(1)<_script>.pcap",
    }
    assert {each["size_bytes"] for each in listed} == {
        path.stat().st_size for path in captures.iterdir() if path.suffix == ".pcap"
    }


def test_two_files_of_one_name_get_two_ids(captures: Path) -> None:
    client = TestClient(create_app([captures / "nonsense.pcap"] * 2), base_url="http://localhost")
    ids = [each["id"] for each in client.get("/api/v1/captures").json()["captures"]]
    assert ids == ["nonsense", "nonsense-2"]


def test_an_analysis_is_what_the_library_says(client: TestClient, captures: Path) -> None:
    answer = client.get("/api/v1/captures/zero-window")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == json.loads(tcpwin.analyze(captures / "Zero Window.pcap").to_json())


def read_curve(trace: dict[str, Any]) -> list[tuple[float, int]]:
    """Read plotly's arrays (base64 of little-endian values; dtype as in numpy) as points."""
    x, y = (np.frombuffer(base64.b64decode(trace[axis]["bdata"]), trace[axis]["dtype"]) for axis in "xy")
    return [(round(float(time), 6), int(value)) for time, value in zip(x, y, strict=True)]


def test_a_figure_shows_the_window_closing(client: TestClient) -> None:
    figure = client.get(FIGURE).json()
    window, flight = (read_curve(trace) for trace in figure["data"])
    # The server's window after its SYN/ACK, its ACK of everything, its update: 2,000, 0, 2,000 bytes.
    assert (0.3, 0) in window
    assert (2.8, 2000) in window
    assert {value for _, value in window} == {0, 2000}
    # Both segments leave at 0.2 s and are acknowledged at 0.3 s.
    assert (0.2, 2000) in flight
    assert (0.3, 0) in flight
    assert flight[-1][1] == 0


def test_the_capture_page_states_what_the_packets_show(client: TestClient) -> None:
    page = html.unescape(client.get("/captures/zero-window", headers=PAGE).text)
    cells = [line.strip().removeprefix('<td class="number">').removesuffix("</td>") for line in page.splitlines()]
    row = cells[cells.index("2,000 B") :]
    # payload, lowest and highest window, highest flight (both segments at once), episodes, 2.8 s − 0.3 s
    assert row[:6] == ["2,000 B", "0 B", "2,000 B", "2,000 B", "1", "2.500 s"]
    assert "192.0.2.1:40000 → 198.51.100.2:80" in page
    assert f'data-source="{FIGURE}"' in page


@pytest.mark.parametrize("path", ["/", f"/captures/{HOSTILE}"])
def test_a_hostile_file_name_is_escaped(client: TestClient, path: str) -> None:
    page = client.get(path, headers=PAGE).text
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/captures/absent", 404),
        ("/api/v1/captures/..%2f..%2fetc%2fpasswd", 404),
        ("/api/v1/captures/nonsense", 422),
        ("/api/v1/captures/zero-window/connections/1/figure", 404),
        ("/api/v1/captures/zero-window/connections/-1/figure", 422),
        ("/api/v1/captures/zero-window/connections/x/figure", 422),
        ("/api/v1/nothing", 404),
        ("/captures/absent", 404),
        ("/static/absent.css", 404),
        ("/static/..%2f_app.py", 404),
    ],
)
def test_an_error_is_a_problem_document(client: TestClient, captures: Path, path: str, status: int) -> None:
    answer = client.get(path)
    problem = answer.json()
    assert (answer.status_code, problem["status"]) == (status, status)
    assert answer.headers["content-type"] == "application/problem+json"
    assert {"type", "title", "detail"} <= problem.keys()
    assert str(captures) not in answer.text


def test_a_wrong_method_is_a_problem_document_that_names_the_right_one(client: TestClient) -> None:
    answer = client.post("/api/v1/captures")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
    assert answer.json()["status"] == 405


def test_a_failure_is_a_problem_document_without_its_cause(captures: Path) -> None:
    app = create_app([captures])
    app.add_api_route("/api/v1/fail", lambda: 1 // 0)
    client = TestClient(app, base_url="http://localhost", raise_server_exceptions=False)
    answer = client.get("/api/v1/fail")
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert "ZeroDivisionError" not in answer.text


def test_a_file_gone_since_the_start_is_a_problem(tmp_path: Path) -> None:
    capture = tmp_path / "gone.pcap"
    capture.touch()
    client = TestClient(create_app([capture]), base_url="http://localhost")
    capture.unlink()
    assert client.get("/api/v1/captures/gone").status_code == 422


def test_a_browser_gets_the_problem_as_a_page(client: TestClient) -> None:
    answer = client.get("/captures/absent", headers=PAGE)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "404 Not Found" in answer.text


@pytest.mark.parametrize("path", ["/", "/healthz", "/static/page.css", "/api/v1/captures/absent"])
def test_every_response_forbids_inline_and_foreign_script(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/", "/captures/zero-window"])
def test_a_page_names_no_other_host_and_no_inline_code(client: TestClient, path: str) -> None:
    page = client.get(path, headers=PAGE).text
    assert "//" not in page.replace("<!doctype html>", "")
    assert "<style" not in page
    assert " style=" not in page
    assert page.count("<script") == page.count('<script src="/static/')


def test_every_asset_of_a_page_is_served(client: TestClient) -> None:
    page = client.get("/captures/zero-window", headers=PAGE).text
    assets = {part.split('"')[0] for part in page.replace('href="', 'src="').split('src="')[1:]}
    assert {"/static/plotly.min.js", "/static/figure.js", "/static/page.css", "/static/icon.svg"} <= assets
    assert {client.get(asset).status_code for asset in assets} == {200}


def test_a_name_of_another_site_is_refused(client: TestClient) -> None:
    assert client.get("/", headers={"host": "rebound.example"}).status_code == 400
    assert client.get("/", headers={"host": "[::1]:8642"}).status_code == 200


def test_the_api_describes_itself(client: TestClient) -> None:
    paths = client.get("/api/v1/openapi.json").json()["paths"]
    assert set(paths) == {
        "/healthz",
        "/api/v1/captures",
        "/api/v1/captures/{capture_id}",
        "/api/v1/captures/{capture_id}/connections/{connection_id}/figure",
    }


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.org"])
def test_the_server_refuses_an_address_that_others_can_reach(captures: Path, host: str) -> None:
    done = CliRunner().invoke(main, [str(captures), "--host", host])
    assert done.exit_code == 2
    assert "not a loopback address" in done.output
