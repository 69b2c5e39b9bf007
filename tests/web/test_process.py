"""The real server as a process: how it starts, listens, and ends."""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
from live import HANG_S
from web.crafted import API

MakeServer = Callable[..., tuple[subprocess.Popen[str], str]]


def test_it_opens_with_what_it_was_given_and_ends_when_told(
    make_server: MakeServer, tmp_path: Path, capture: bytes
) -> None:
    (tmp_path / "zero.pcap").write_bytes(capture)
    server, address = make_server(tmp_path / "zero.pcap")
    with httpx2.Client(base_url=address, timeout=HANG_S) as client:
        while not (found := client.get(f"{API}/captures").json()["captures"]) or found[0]["status"] != "done":
            time.sleep(0.05)
        assert (found[0]["name"], found[0]["tags"], found[0]["is_bundled"]) == ("zero.pcap", ["bundled"], True)
        metrics = client.get("/metrics").text
        assert 'tcpwin_analyses_total{status="done"} 1.0' in metrics
        assert 'tcpwin_requests_total{endpoint="api.captures.list_captures",method="GET",status="200"}' in metrics
    server.send_signal(signal.SIGTERM)
    assert server.wait() in (0, -signal.SIGTERM)


def test_a_broken_off_upload_leaves_nothing(make_server: MakeServer, tmp_path: Path, capture: bytes) -> None:
    (tmp_path / "none").mkdir()
    _, address = make_server(tmp_path / "none")
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


def test_two_servers_on_one_folder(make_server: MakeServer, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    make_server(tmp_path / "none")
    program = Path(sys.executable).parent / "tcpwin-web"
    done = subprocess.run(
        [program, tmp_path / "none", "--port", "0", "--data", tmp_path / "served"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "another service runs on this data folder" in done.stderr


def test_beyond_loopback_it_wants_the_token(make_server: MakeServer, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    _, address = make_server(tmp_path / "none", "--host", "0.0.0.0", TCPWIN_TOKEN="correct horse battery")
    local = address.replace("0.0.0.0", "127.0.0.1")
    assert httpx2.get(f"{local}{API}/captures", timeout=HANG_S).status_code == 401
    shown = {"authorization": "Bearer correct horse battery"}
    assert httpx2.get(f"{local}{API}/captures", headers=shown, timeout=HANG_S).status_code == 200
