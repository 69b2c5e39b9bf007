"""Requests and limits that SECURITY.md names: framing, paths, ranges, forms, workers."""

import resource
import socket
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from fastapi.testclient import TestClient
from live import HANG_S, until
from web.crafted import API
from web.running import Host

from tcpwin_web.jobs import ProcessExecutor
from tcpwin_web.readiness import FRESH_SECONDS


def raw(address: str, sent: bytes) -> bytes:
    """Send bytes, and return all that comes back until the connection is closed."""
    place = urlsplit(address)
    with socket.create_connection((place.hostname, place.port), timeout=HANG_S) as opened:
        opened.sendall(sent)
        received = b""
        try:
            while data := opened.recv(1 << 16):
                received += data
        except ConnectionResetError:
            pass
        return received


def test_framing_that_could_be_read_in_two_ways(host: Host) -> None:
    address = host()
    body = b"4\r\nabcd\r\n0\r\n\r\n"
    own, line = b"Host: 127.0.0.1\r\n", b"POST /api/v1/captures HTTP/1.1\r\n"
    for sent in (
        line + own + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd",
        line + own + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" + body,
        line + own + own + b"\r\n",
        line + b"Host: example.org\r\nContent-Length: 0\r\n\r\n",
        b"GET http://example.org/api/v1/captures HTTP/1.1\r\n" + own + b"\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
    ):
        assert raw(address, sent).startswith(b"HTTP/1.1 400"), sent
    assert httpx2.get(f"{address}{API}/captures", timeout=HANG_S).json()["total"] == 0


def test_paths_ranges_and_forms(host: Host, tmp_path: Path) -> None:
    address = host(max_upload_bytes=100_000)
    for path in (
        "/static/../../etc/passwd",
        "/static/%2e%2e/%2e%2e/etc/passwd",
        "/static//etc/passwd",
        "/static/%00",
        "/static/%ff",
        "/api/v1/captures/..%2f..%2fx",
        "/api/v1/captures/%00/analysis",
    ):
        answer = raw(address, f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 4"), (path, answer[:100])
        assert b"root:" not in answer
    with httpx2.Client(base_url=address, timeout=HANG_S) as client:
        ranges = client.get("/static/tcpwin.css", headers={"range": "bytes=" + ",".join(["0-1"] * 5000)})
        assert len(ranges.content) < 1_000_000
        for form in (
            {"files": [("files", (f"{number}", b"x")) for number in range(500)]},
            {"files": [("files", ("a" * 3_000_000, b"x"))]},
            {"data": {f"field{number}": "x" for number in range(5000)}, "files": [("files", ("a", b"x"))]},
            {"files": [("files", ("large", bytes(2_000_000)))]},
        ):
            answer = client.post("/upload", **form)  # type: ignore[arg-type]
            assert 400 <= answer.status_code < 500, answer.text
        assert client.get(f"{API}/captures").json()["total"] == 0
    until(lambda: list((tmp_path / "served" / "incoming").iterdir()) == [])


def _limits() -> tuple[int, str, int, str]:
    """Run in a worker."""
    status = Path("/proc/self/status").read_text()
    mode = next(line.split()[1] for line in status.splitlines() if line.startswith("Seccomp:"))
    try:
        socket.socket().close()
        opened = "opened"
    except PermissionError:
        opened = "refused"
    return resource.getrlimit(resource.RLIMIT_CORE)[0], mode, resource.getrlimit(resource.RLIMIT_AS)[0], opened


def test_workers_have_neither_core_files_nor_sockets() -> None:
    executor = ProcessExecutor(1, memory_bytes=1 << 30, seconds=60)
    try:
        assert executor.submit(_limits).result(HANG_S) == (0, "2", 1 << 30, "refused")
    finally:
        executor.shutdown()
    socket.socket().close()


def test_readiness_is_checked_at_most_once_a_second(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    assert FRESH_SECONDS == 1
    # On a busy machine, six requests take longer than a second.
    monkeypatch.setattr("tcpwin_web.readiness.FRESH_SECONDS", HANG_S)
    readiness = client.app.state.service.readiness  # type: ignore[attr-defined]
    assert client.get("/readyz").status_code == 200
    asked = readiness._asking
    assert {client.get("/readyz").status_code for _ in range(5)} == {200}
    assert readiness._asking is asked
    readiness._asked -= HANG_S
    assert client.get("/readyz").status_code == 200
    assert readiness._asking is not asked
