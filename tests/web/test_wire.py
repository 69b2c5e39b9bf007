"""Requests that no honest client sends, and unread answers: the cost of each is bounded."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import httpx2
import pytest
from live import HANG_S, until
from web.stalling import Running
from web.wire import HOST, answer, await_end, dial, send_until_closed, status


@pytest.fixture
def connection(running: Running) -> Iterator[socket.socket]:
    with ExitStack() as stack:
        yield dial(stack, running.address)


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"", 0),
        (b"GET / HT", 408),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ", 408),
        (
            b"POST /api/v1/captures HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 20\r\n"
            + HOST
            + b'\r\n{"na',
            408,
        ),
        # RFC 9112 §3.2.2: the header is ignored, so it cannot replace another site's name.
        (b"GET http://localhost/healthz HTTP/1.1\r\n" + HOST + b"\r\n", 200),
        (b"GET http://evil.example/healthz HTTP/1.1\r\n" + HOST + b"\r\n", 400),
        (b"GET http://localhost@evil.example/healthz HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ],
    ids=["silence", "start of a line", "head", "body", "host", "another host", "another host behind @"],
)
def test_an_unfinished_request_is_given_up_and_a_false_host_refused(
    connection: socket.socket, sent: bytes, code: int
) -> None:
    connection.sendall(sent)
    assert status(connection) == code


@pytest.mark.parametrize(
    "sent",
    [
        b"get / HTTP/1.1\r\n" + HOST + b"\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
    ],
    ids=["method", "tls", "length", "long"],
)
def test_garbage_gets_a_problem_document_too(connection: socket.socket, sent: bytes) -> None:
    connection.sendall(sent)
    response = answer(connection)
    problem = json.loads(response.read())
    assert response.status == problem["status"]
    assert response.status in (400, 431)
    assert problem["detail"]
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["content-security-policy"].startswith("default-src 'none'")


def test_garbage_is_not_refused_in_place_of_another_answer(running: Running, connection: socket.socket) -> None:
    connection.sendall(b"GET " + running.large.encode() + b" HTTP/1.1\r\n" + HOST + b"\r\nno request\r\n\r\n")
    said = b""
    with suppress(ConnectionError):
        while part := connection.recv(1 << 16):
            said += part
    assert b" 400 " not in said


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\n" + HOST,
        b"POST /api/v1/uploads?name=x HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n",
    ],
    ids=["head", "trailer"],
)
def test_fields_without_end_are_not_stored(connection: socket.socket, head: bytes) -> None:
    connection.sendall(head)
    send_until_closed(connection, b"X: " + b"x" * 4000 + b"\r\n")


def test_requests_before_the_answers_to_earlier_ones_are_few(running: Running) -> None:
    with ExitStack() as stack:
        few = dial(stack, running.address)
        few.sendall((b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n") * 10)
        said = b""
        while said.count(b'{"status":"ok"}') < 10:
            more = few.recv(1 << 16)
            assert more
            said += more
        many = dial(stack, running.address)
        send_until_closed(many, (b"GET / HTTP/1.1\r\n" + HOST + b"\r\n") * 1000)


def test_an_answer_that_nobody_reads_is_not_kept(running: Running) -> None:
    with ExitStack() as stack:
        connection = dial(stack, running.address, buffer_bytes=4096)
        connection.sendall(b"GET " + running.large.encode() + b" HTTP/1.1\r\n" + HOST + b"\r\n")
        await_end(connection)


def test_an_answer_that_is_read_slowly_is_sent_whole(running: Running) -> None:
    with ExitStack() as stack:
        connection = dial(stack, running.address, buffer_bytes=4096)
        head = b"GET " + running.large.encode() + b" HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
        connection.sendall(head)
        response, size = answer(connection), 0
        while part := response.read(1 << 18):
            size += len(part)
            time.sleep(0.3)
        assert size == int(response.headers["content-length"])


def test_a_client_that_leaves_while_it_sends_a_form_is_no_failure(running: Running) -> None:
    """The log had a traceback for each."""
    with ExitStack() as stack:
        head = b"POST /upload HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 1000\r\n"
        dial(stack, running.address).sendall(head + HOST + b"\r\n--x\r\n")
    counted = 'tcpwin_requests_total{endpoint="pages.captures.upload",method="POST",status="499"} 1.0'
    until(lambda: counted in httpx2.get(f"{running.address}/metrics", timeout=HANG_S).text)
