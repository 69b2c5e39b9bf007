"""Requests as bytes on a connection of the test: requests that no honest client sends, and unread answers."""

import http.client
import select
import socket
from contextlib import ExitStack, closing, suppress
from urllib.parse import urlsplit

from live import HANG_S
from web.crafted import API

HOST = b"Host: localhost\r\n"


def dial(stack: ExitStack, address: str, *, source: str = "127.0.0.1", buffer_bytes: int = 0) -> socket.socket:
    """Connect to a service; the stack closes the connection."""
    ends = urlsplit(address)
    connection = stack.enter_context(socket.socket())
    if buffer_bytes:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
    connection.bind((source, 0))
    connection.settimeout(HANG_S)
    connection.connect((str(ends.hostname), int(ends.port or 0)))
    return connection


def begin_upload(stack: ExitStack, address: str, sent: bytes, *, source: str = "127.0.0.1") -> socket.socket:
    """Begin an upload of a thousand bytes and send only some of them."""
    connection = dial(stack, address, source=source)
    head = b"POST " + API.encode() + b"/uploads?name=stalled.pcap HTTP/1.1\r\n" + HOST + b"Content-Length: 1000\r\n\r\n"
    connection.sendall(head + sent)
    return connection


def ask(stack: ExitStack, address: str, path: str, *, source: str = "127.0.0.1") -> socket.socket:
    """Send a request without waiting for the answer."""
    connection = dial(stack, address, source=source)
    connection.sendall(b"GET " + path.encode() + b" HTTP/1.1\r\n" + HOST + b"\r\n")
    return connection


def answer(connection: socket.socket) -> http.client.HTTPResponse:
    """Wait for an answer."""
    response = http.client.HTTPResponse(connection)
    response.begin()
    return response


def status(connection: socket.socket) -> int:
    """Wait for an answer's status; return 0 if the connection closes instead."""
    try:
        with closing(answer(connection)) as response:
            return response.status
    except (http.client.HTTPException, ConnectionError):
        return 0


def await_end(connection: socket.socket) -> None:
    """Wait until the other end has closed a connection, without reading."""
    waiting = select.poll()
    waiting.register(connection, select.POLLHUP | select.POLLERR | select.POLLRDHUP)
    assert waiting.poll(HANG_S * 1000), "it is still open"


def send_until_closed(connection: socket.socket, sent: bytes) -> None:
    """Send the same repeatedly, until the other end has closed the connection."""
    with suppress(ConnectionError):
        while True:
            connection.sendall(sent)
