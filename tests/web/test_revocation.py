"""Streams, uploads and answers end within a second after the access of their caller."""

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from urllib.parse import urlsplit

import httpx2
import pytest
from live import HANG_S, until
from web.crafted import API, many_connections, settle
from web.running import Host
from web.test_tokens import OWNER, bearer
from web.workers import forkers, let_go

SOON_S = 1.0
SECONDS_PER_DAY = 86_400


@pytest.fixture
def address(host: Host, database_url: str | None) -> str:
    return host(token=OWNER, database_url=database_url, workers=1)


@pytest.fixture
def owner(address: str) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=address, timeout=HANG_S, headers=bearer(OWNER)) as client:
        yield client


def token(owner: httpx2.Client, scope: str, seconds: float = 1000) -> tuple[str, dict[str, str]]:
    made = owner.post(f"{API}/tokens", json={"name": "x", "scope": scope, "days": seconds / SECONDS_PER_DAY}).json()
    return made["id"], bearer(made["secret"])


def open_capture(owner: httpx2.Client) -> str:
    return str(owner.post(f"{API}/captures", json={"name": "waits for files"}).json()["id"])


def begin(stack: ExitStack, address: str, head: str, headers: dict[str, str]) -> socket.socket:
    """Send a request, and return its connection once the answer, or the wait for the body, has begun."""
    place = urlsplit(address)
    opened = stack.enter_context(socket.create_connection((place.hostname, place.port), timeout=HANG_S))
    lines = [head, "Host: 127.0.0.1", *(f"{name}: {value}" for name, value in headers.items())]
    opened.sendall("\r\n".join((*lines, "", "")).encode())
    return opened


def ends_soon_after(opened: socket.socket, act: Callable[[], object]) -> None:
    opened.settimeout(0.3)
    with suppress(TimeoutError):
        while opened.recv(1 << 16):
            pass
        pytest.fail("it ended before")
    opened.settimeout(HANG_S)
    act()
    began = time.monotonic()
    with suppress(ConnectionResetError):
        while opened.recv(1 << 16):
            pass
    assert time.monotonic() - began < SOON_S


def test_a_stream_and_an_upload_end_with_their_token(address: str, owner: httpx2.Client, capture: bytes) -> None:
    with ExitStack() as stack:
        id, headers = token(owner, "read")
        stream = begin(stack, address, f"GET {API}/captures/{open_capture(owner)}/progress HTTP/1.1", headers)
        ends_soon_after(stream, lambda: owner.delete(f"{API}/tokens/{id}"))
        id, headers = token(owner, "upload")
        head = f"POST {API}/uploads?name=half.pcap HTTP/1.1\r\nContent-Length: {len(capture)}"
        upload = begin(stack, address, head, headers)
        upload.sendall(capture[:100])
        until(lambda: owner.get(f"{API}/captures").json()["total"] == 2)
        ends_soon_after(upload, lambda: owner.delete(f"{API}/tokens/{id}"))
    # Nothing of it is kept.
    until(lambda: owner.get(f"{API}/captures").json()["total"] == 1)


def test_an_expired_token_and_a_logout_end_streams(address: str, owner: httpx2.Client) -> None:
    watched = f"GET {API}/captures/{open_capture(owner)}/progress HTTP/1.1"
    with ExitStack() as stack, httpx2.Client(base_url=address, timeout=HANG_S) as browser:
        _, headers = token(owner, "read", 1.5)
        expiring = begin(stack, address, watched, headers)
        ends_soon_after(expiring, lambda: time.sleep(1.5))
        browser.post("/login", data={"token": OWNER})
        cookie = {"Cookie": "; ".join(f"{name}={value}" for name, value in browser.cookies.items())}
        stream = begin(stack, address, watched, cookie)
        csrf = browser.get("/upload", headers={"accept": "text/html"}).text.partition('name="csrf" value="')[2]
        ends_soon_after(stream, lambda: browser.post("/logout", data={"csrf": csrf.partition('"')[0]}))


def test_an_answer_that_a_worker_makes_ends(address: str, owner: httpx2.Client) -> None:
    """A print waits in the same way for its browser."""
    answer = owner.post(f"{API}/uploads", params={"name": "many.pcap"}, content=many_connections(2000))
    capture_id = answer.json()["id"]
    assert settle(owner, capture_id)["status"] == "done"
    stopped = forkers(os.getpid())
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    with ExitStack() as stack:
        stack.callback(let_go, stopped)
        id, headers = token(owner, "read")
        report = begin(stack, address, f"GET {API}/captures/{capture_id}/report HTTP/1.1", headers)
        until(lambda: 'tcpwin_taken{kind="answers"} 1.0' in owner.get("/metrics").text)
        ends_soon_after(report, lambda: owner.delete(f"{API}/tokens/{id}"))
        until(lambda: 'tcpwin_taken{kind="answers"} 0.0' in owner.get("/metrics").text)
