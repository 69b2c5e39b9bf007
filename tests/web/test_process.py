"""The real server as a process: starting, listening, stopping."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from click.testing import CliRunner
from fastapi.testclient import TestClient
from live import HANG_S, until
from reference import ROOT
from web.crafted import API
from web.running import Host, MakeServer
from web.workers import CONNECTIONS, held_analysis

from tcpwin_web import Settings, create_app
from tcpwin_web.ledger import STREAMS
from tcpwin_web.results import layout
from tcpwin_web.server import main


def test_it_opens_the_given_captures_and_ends_on_request(
    make_server: MakeServer, on_database: list[str], tmp_path: Path, capture: bytes
) -> None:
    (tmp_path / "zero.pcap").write_bytes(capture)
    server, address = make_server(tmp_path / "zero.pcap", *on_database)
    with httpx2.Client(base_url=address, timeout=HANG_S) as client:
        while not (found := client.get(f"{API}/captures").json()["captures"]) or found[0]["status"] != "done":
            time.sleep(0.05)
        assert (found[0]["name"], found[0]["tags"], found[0]["is_bundled"]) == ("zero.pcap", [], True)
        metrics = client.get("/metrics").text
        assert 'tcpwin_analyses_total{status="done"} 1.0' in metrics
        assert 'tcpwin_requests_total{endpoint="api.captures.list_captures",method="GET",status="200"}' in metrics
    server.send_signal(signal.SIGTERM)
    assert server.wait() in (0, -signal.SIGTERM)


def test_a_broken_off_upload_leaves_nothing(host: Host, tmp_path: Path, capture: bytes) -> None:
    address = host()
    ends = urlsplit(address)
    assert ends.hostname is not None
    assert ends.port is not None
    with socket.create_connection((ends.hostname, ends.port)) as connection:
        head = f"POST {API}/uploads?name=x.pcap HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(capture)}\r\n\r\n"
        connection.sendall(head.encode() + capture[:200])
        with httpx2.Client(base_url=address, timeout=HANG_S) as client:
            while not client.get(f"{API}/captures").json()["total"]:
                time.sleep(0.01)
    with httpx2.Client(base_url=address, timeout=HANG_S) as client:
        while client.get(f"{API}/captures").json()["total"]:
            time.sleep(0.01)
    assert list((tmp_path / "served" / "incoming").iterdir()) == []


@pytest.mark.nightly
def test_the_number_of_progress_streams_is_limited(host: Host, tmp_path: Path) -> None:
    address = host(workers=1)
    place = urlsplit(address)

    def send(data: bytes) -> str:
        answer = httpx2.post(f"{address}{API}/uploads", params={"name": "large.pcap"}, content=data, timeout=HANG_S)
        return str(answer.json()["id"])

    def watch(stack: ExitStack, id: str) -> http.client.HTTPResponse:
        connection = stack.enter_context(
            closing(http.client.HTTPConnection(str(place.hostname), place.port, timeout=HANG_S))
        )
        connection.request("GET", f"{API}/captures/{id}/progress")
        return stack.enter_context(closing(connection.getresponse()))

    with held_analysis(os.getpid(), tmp_path / "served", send) as (id, _), ExitStack() as streams:
        first = streams.enter_context(ExitStack())
        assert watch(first, id).status == 200
        assert {watch(streams, id).status for _ in range(STREAMS - 1)} == {200}
        refused = watch(streams, id)
        assert (refused.status, refused.headers["content-type"]) == (503, "application/problem+json")
        assert refused.headers["retry-after"] == "5"
        assert (
            json.loads(refused.read())["detail"]
            == "You have too many progress streams open already: close one, or try again later."
        )
        # All others are answered, and a closed connection frees its slot.
        assert httpx2.get(f"{address}/captures/{id}", timeout=HANG_S).status_code == 200
        first.close()
        until(lambda: watch(streams, id).status == 200)


@pytest.mark.nightly
def test_uploads_interrupted_by_a_kill_are_listed_and_can_resume(
    make_server: MakeServer,
    host: Host,
    on_database: list[str],
    database_url: str | None,
    tmp_path: Path,
    capture: bytes,
) -> None:
    server, address = make_server(*on_database)
    ends = urlsplit(address)
    assert (ends.hostname, ends.port) != (None, None)
    with httpx2.Client(base_url=address, timeout=HANG_S) as client:
        case = client.post(f"{API}/captures", json={"name": "a case"}).json()["id"]
        first = client.put(f"{API}/captures/{case}/files", params={"name": "first.pcap"}, content=capture).json()
        with ExitStack() as open_ones:
            for request in (f"POST {API}/uploads?name=x.pcap", f"PUT {API}/captures/{case}/files?name=second.pcap"):
                sending = open_ones.enter_context(socket.create_connection((str(ends.hostname), int(ends.port or 0))))
                head = f"{request} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(capture)}\r\n\r\n"
                sending.sendall(head.encode() + capture[:200])
            while len(list((tmp_path / "served" / "incoming").iterdir())) < 2:
                time.sleep(0.01)
            server.kill()
            server.wait()
    with httpx2.Client(base_url=host(database_url=database_url), timeout=HANG_S) as client:
        listed = {each["name"]: each for each in client.get(f"{API}/captures").json()["captures"]}
        assert {name: each["status"] for name, each in listed.items()} == {"x.pcap": "failed", "a case": "failed"}
        for each in listed.values():
            assert each["failure"] == "the service stopped during an upload: send the missing files again"
        assert list((tmp_path / "served" / "incoming").iterdir()) == []
        kept = [path.name for path in (tmp_path / "served" / "files").rglob("*") if path.is_file()]
        assert kept == [first["files"][0]["sha256"]]
        # The sender can continue at the same offset.
        assert client.put(f"{API}/captures/{case}/files", params={"name": "s.pcap"}, content=capture).status_code == 201
        assert client.get(f"{API}/captures/{case}").json()["status"] == "open"
        assert client.post(f"{API}/captures/{case}/analysis").status_code == 202


@pytest.mark.nightly
def test_two_servers_on_one_folder(host: Host, tmp_path: Path) -> None:
    host()
    program = Path(sys.executable).parent / "tcpwin-web"
    done = subprocess.run(
        [program, "--port", "0", "--data", tmp_path / "served"], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "another service runs on this data folder" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.nightly
def test_beyond_loopback_it_wants_the_token(make_server: MakeServer) -> None:
    _, address = make_server("--host", "0.0.0.0", TCPWIN_TOKEN="correct horse battery")
    local = address.replace("0.0.0.0", "127.0.0.1")
    assert httpx2.get(f"{local}{API}/captures", timeout=HANG_S).status_code == 401
    shown = {"authorization": "Bearer correct horse battery"}
    assert httpx2.get(f"{local}{API}/captures", headers=shown, timeout=HANG_S).status_code == 200


def test_the_readmes_first_command_ends_with_the_dashboard_open(tmp_path: Path) -> None:
    """Its last program, with the test's data and browser; Ctrl-C ends it."""
    commands = (ROOT / "README.md").read_text(encoding="utf8").splitlines()
    first = next(line for line in commands if line.startswith("python3 -m venv"))
    words = first.rpartition("&& ")[2].split()
    assert words[0] == ".venv/bin/tcpwin"
    browser, shown = tmp_path / "browser", tmp_path / "shown"
    browser.write_text(
        f"#!{sys.executable}\n"
        "import pathlib, sys, urllib.request\n"
        "page = urllib.request.urlopen(sys.argv[1]).read()\n"
        f"part = pathlib.Path({str(shown)!r}).with_suffix('.part')\n"
        "part.write_bytes(sys.argv[1].encode() + b'\\n' + page)\n"
        f"part.replace({str(shown)!r})\n"
    )
    browser.chmod(0o700)
    environment = {"BROWSER": str(browser), "TCPWIN_PORT": "0", "TCPWIN_DATA": str(tmp_path / "data")}
    server = subprocess.Popen(
        [Path(sys.executable).parent / "tcpwin", *words[1:]],
        cwd=ROOT,
        env={**os.environ, **environment},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        said = server.stdout.readline()
        while not shown.exists():
            assert server.poll() is None
            time.sleep(0.05)
        address, _, page = shown.read_text(encoding="utf8").partition("\n")
        assert f"tcpwin's dashboard is at {address} (press Ctrl-C to stop)" in said
        assert "<h1" in page
        with httpx2.Client(base_url=address, timeout=HANG_S) as client:
            while not client.get(f"{API}/captures", params={"search": "slow-reader"}).json()["total"]:
                time.sleep(0.05)
    finally:
        server.send_signal(signal.SIGINT)
    _, errors = server.communicate()
    assert server.returncode == 0, errors
    assert "Traceback" not in errors


@pytest.mark.nightly
def test_a_database_that_cannot_be_used_is_reported_in_words(tmp_path: Path) -> None:
    program = Path(sys.executable).parent / "tcpwin-web"
    url = "postgresql://me:secret@127.0.0.1:9/x"
    done = subprocess.run(
        [program, "--port", "0", "--data", tmp_path / "data", "--database-url", url],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode not in (0, None)
    assert "the database cannot be used" in done.stderr
    assert "Traceback" not in done.stderr
    assert "secret" not in done.stderr


def test_other_reasons_not_to_start_are_reported_in_words() -> None:
    app = create_app(Settings(data=Path("/proc/nothing")))
    with pytest.raises(OSError, match="nothing"), TestClient(app):
        pass
    assert app.state.service.failure.startswith("the data folder /proc/nothing cannot be used")
    for url, says in (
        ("secret", "TCPWIN_DATABASE_URL: not a database URL such as postgresql+psycopg://"),
        ("mysql://me:secret@127.0.0.1/x", "TCPWIN_DATABASE_URL: mysql is not supported"),
        ("postgresql+asyncpg://me:secret@127.0.0.1/x", "postgresql+asyncpg is not supported"),
    ):
        done = CliRunner().invoke(main, ["--database-url", url])
        assert (done.exit_code, says in done.output, "secret" in done.output) == (2, True, False), done.output


@pytest.mark.nightly
def test_analyses_of_one_caller_do_not_delay_another(host: Host, tmp_path: Path, capture: bytes) -> None:
    address = host(workers=1)

    def send(data: bytes, source: str = "127.0.0.2") -> str:
        with httpx2.Client(transport=httpx2.HTTPTransport(local_address=source), timeout=HANG_S) as client:
            answer = client.post(f"{address}{API}/uploads", params={"name": "x.pcap"}, content=data)
        return str(answer.json()["id"])

    with held_analysis(os.getpid(), tmp_path / "served", send):
        first = [send(capture) for _ in range(3)]
        other = send(capture, "127.0.0.3")
    places = {id: tmp_path / "served" / "results" / id / layout.CAPTURE for id in (*first, other)}
    until(lambda: all(place.exists() for place in places.values()))
    written = sorted(places, key=lambda id: places[id].stat().st_mtime_ns)
    assert written.index(other) == 0
    assert [id for id in written if id != other] == first


def test_a_stop_closes_streams_and_the_next_server_resumes_them(
    make_server: MakeServer, host: Host, on_database: list[str], database_url: str | None, tmp_path: Path
) -> None:
    server, address = make_server("--workers", "1", *on_database)

    def send(data: bytes) -> str:
        answer = httpx2.post(f"{address}{API}/uploads", params={"name": "large.pcap"}, content=data, timeout=HANG_S)
        return str(answer.json()["id"])

    with held_analysis(server.pid, tmp_path / "served", send) as (id, _):
        with httpx2.stream("GET", f"{address}{API}/captures/{id}/progress", timeout=HANG_S) as answer:
            lines = answer.iter_lines()
            assert next(lines) == "event: progress"
            server.send_signal(signal.SIGTERM)
            rest = [line for line in lines if line]
        server.wait()
    assert "event: end" not in rest
    address = host(database_url=database_url)
    with httpx2.Client(base_url=address, timeout=HANG_S) as client:
        while (entry := client.get(f"{API}/captures/{id}").json())["status"] in ("queued", "running"):
            time.sleep(0.05)
    assert (entry["status"], entry["connections"]) == ("done", CONNECTIONS)
