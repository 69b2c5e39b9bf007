"""Requests that no honest client sends, and answers that are not read: what a connection may cost before and after."""

import json
import time
from contextlib import ExitStack, suppress

import pytest
from web.stalling import Running
from web.wire import HOST, answer, await_end, dial, send_until_closed, status


def test_a_short_body_that_does_not_come_ends(running: Running) -> None:
    with ExitStack() as stack:
        connection = dial(stack, running.address)
        connection.sendall(
            b"POST /api/v1/captures HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 20\r\n"
            + HOST
            + b'\r\n{"na'
        )
        assert status(connection) == 408


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "])
def test_a_head_that_does_not_end_is_given_up(running: Running, sent: bytes) -> None:
    with ExitStack() as stack:
        connection = dial(stack, running.address)
        connection.sendall(sent)
        assert status(connection) == (408 if sent else 0)


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
def test_what_is_no_request_is_a_problem_document_too(running: Running, sent: bytes) -> None:
    with ExitStack() as stack:
        connection = dial(stack, running.address)
        connection.sendall(sent)
        response = answer(connection)
        problem = json.loads(response.read())
        assert response.status == problem["status"]
        assert response.status in (400, 431)
        assert problem["detail"]
        assert response.headers["content-type"] == "application/problem+json"
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["content-security-policy"].startswith("default-src 'none'")


def test_what_is_no_request_is_not_refused_in_the_place_of_another_answer(running: Running) -> None:
    with ExitStack() as stack:
        connection = dial(stack, running.address)
        connection.sendall(b"GET " + running.large.encode() + b" HTTP/1.1\r\n" + HOST + b"\r\nno request\r\n\r\n")
        said = b""
        with suppress(ConnectionError):
            while part := connection.recv(1 << 16):
                said += part
        assert b" 400 " not in said


@pytest.mark.parametrize(
    ("named", "code"), [("localhost", 200), ("evil.example", 400), ("localhost@evil.example", 400)]
)
def test_a_host_in_the_address_goes_before_the_header(running: Running, named: str, code: int) -> None:
    """RFC 9112 section 3.2.2: the header is ignored, so that it cannot stand for another site's name."""
    with ExitStack() as stack:
        connection = dial(stack, running.address)
        connection.sendall(f"GET http://{named}/healthz HTTP/1.1\r\n".encode() + HOST + b"\r\n")
        assert status(connection) == code


def test_a_head_that_never_ends_is_not_kept(running: Running) -> None:
    with ExitStack() as stack:
        connection = dial(stack, running.address)
        connection.sendall(b"GET / HTTP/1.1\r\n" + HOST)
        send_until_closed(connection, b"X: " + b"x" * 4000 + b"\r\n")


def test_what_a_chunked_body_has_beside_its_content_is_not_kept(running: Running) -> None:
    with ExitStack() as stack:
        connection = dial(stack, running.address)
        head = b"POST /api/v1/uploads?name=x HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head + b"1\r\nx\r\n0\r\n")
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
