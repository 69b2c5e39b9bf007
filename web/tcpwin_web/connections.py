"""Limits on a client's TCP connection: while it sends request heads, and while it reads responses.

uvicorn's own protocol waits forever for the end of a head, buffers whatever precedes it, and keeps responses that
nobody reads. Here a connection that makes no progress is closed.
"""

import asyncio
import ipaddress
import json
import select
import socket
import struct
from http import HTTPStatus
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from tcpwin_web.crowding import Crowd
from tcpwin_web.headers import HEADERS
from tcpwin_web.limiting import network_of
from tcpwin_web.problems import MEDIA_TYPE
from tcpwin_web.security.calling import DROP
from tcpwin_web.security.scopes import Scope

HEAD_SECONDS = 10.0
"""Maximum time for the head of a request, from its first byte or from the start of the connection."""
MAX_HEAD_BYTES = 64 << 10
"""Also the limit for the extensions and trailers of a chunked body (RFC 9112 section 7.1)."""
MAX_PIPELINED = 16
"""Maximum number of requests sent before earlier ones are answered."""
LEAST_READ_BYTES = 4096
"""Minimum number of bytes of a buffered response that a client must read per stall timeout."""
WRITE_BUFFER_BYTES = 4096
"""Buffer beyond the kernel's own: above it, the client must keep reading."""
DETAILS = {
    400: "This is not an HTTP request.",
    408: "The request's head did not arrive in time.",
    431: "The request's head is too long.",
}


def _refusal(status: int) -> bytes:
    title = HTTPStatus(status).phrase
    body = json.dumps({"type": "about:blank", "title": title, "status": status, "detail": DETAILS[status]}).encode()
    sent = {"Content-Type": MEDIA_TYPE, "Content-Length": len(body), "Connection": "close", **HEADERS}
    return "".join(f"{name}: {value}\r\n" for name, value in sent.items()).encode() + b"\r\n" + body


REFUSALS = {status: _refusal(status) for status in DETAILS}


class Connection(HttpToolsProtocol):
    """One connection of a client."""

    transport: asyncio.Transport
    stall_seconds: float = 30.0
    """Time after which a client that does not read its response, or finish its request's head, is disconnected."""
    proxies: tuple[str, ...] = ()
    """Addresses and networks that may have any number of connections."""
    crowd = Crowd()
    """All connections of the service."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._head_timer: asyncio.TimerHandle | None = None
        self._read_timer: asyncio.TimerHandle | None = None
        self._unread_bytes = 0
        self._idle_bytes = 0
        self._is_in_head = True
        self._is_unread = False
        """Whether its first data has arrived and was not read yet."""
        self._requests: list[RequestResponseCycle] = []
        """Requests being answered or waiting for it."""
        self._address = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES, low=0)
        address = self.client[0] if self.client else ""
        self._address = network_of(address)
        self._is_unread = _has_data(transport.get_extra_info("socket"))
        self.crowd.add(self, self._address, is_proxy=_is_among(address, self.proxies))
        if not transport.is_closing():
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timers()
        self.crowd.remove(self, self._address)
        self.crowd.forget_unread(self)
        super().connection_lost(exc)
        # uvicorn notifies only the latest request; with pipelining, that is not the one being answered.
        for each in self._requests:
            if not each.response_complete:
                each.disconnected = True
                each.message_event.set()
        self.pipeline.clear()

    def data_received(self, data: bytes) -> None:
        self._is_unread = False
        if self._is_in_head:
            self._await_head()
        self._idle_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._idle_bytes > MAX_HEAD_BYTES:
            self._refuse(431)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_in_head = True

    def on_headers_complete(self) -> None:
        self._is_in_head, self._idle_bytes = False, 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        # The parser answers any exception with status 400, and reads nothing more.
        if len(self.pipeline) > MAX_PIPELINED:
            raise ValueError("too many requests wait")
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > MAX_HEAD_BYTES:
            raise ValueError("the head is too long")
        self._take_authority()
        super().on_headers_complete()
        # For `Calling`, which knows when a caller loses access.
        self.scope[DROP] = self.drop  # type: ignore[literal-required]
        self._requests = [*(each for each in self._requests if not each.response_complete), self.cycle]

    def _take_authority(self) -> None:
        """Let the host of an absolute-form target override the Host header (RFC 9112 section 3.2.2)."""
        if self.url.startswith(b"/"):
            return
        found = httptools.parse_url(self.url)
        if found.host:
            port = b":%d" % found.port if found.port else b""
            host = found.host if b":" not in found.host else b"[" + found.host + b"]"
            named = (b"host", host + port)
            self.headers[:] = [named if name == b"host" else (name, value) for name, value in self.headers]

    def on_body(self, body: bytes) -> None:
        self._idle_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._is_in_head, self._idle_bytes = True, 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._watch_reading()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._watch_reading()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reading()
        self.crowd.hold_unread(self, self._address, self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        super().resume_writing()
        self.crowd.forget_unread(self)
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    @property
    def rank(self) -> int:
        """How much the connection matters, as `Crowd` counts it."""
        if not self._requests:
            return int(self._is_unread)
        state = self._requests[-1].scope.get("state", {})
        # Where no token is set, everyone has full access, and only what is in progress counts.
        if state.get("scope") is Scope.ADMIN and state.get("actor") != "local":
            return 3
        return 0 if not self._is_answering else 2 if state.get("credential") or state.get("actor") == "local" else 1

    @property
    def credential(self) -> str | None:
        """The token or login of its latest request, for `Crowd`."""
        return self._requests[-1].scope.get("state", {}).get("credential") if self._requests else None

    def drop(self) -> None:
        """Close the connection at once, with what it is sending or receiving."""
        self._reset()

    @property
    def _is_answering(self) -> bool:
        return any(not each.response_complete for each in self._requests)

    def _await_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(min(HEAD_SECONDS, self.stall_seconds), self._give_up_head)

    def _give_up_head(self) -> None:
        self._head_timer = None
        if self.transport.is_closing() or not self._is_in_head:
            return
        if self._is_answering:
            # The next request need not arrive before the current one is answered.
            self._await_head()
        elif self._idle_bytes:
            self._refuse(408)
        else:
            self.transport.close()

    def _watch_reading(self) -> None:
        unread = self.transport.get_write_buffer_size()
        if unread and self._read_timer is None:
            self._unread_bytes = unread
            self._read_timer = self.loop.call_later(self.stall_seconds, self._check_read)

    def _check_read(self) -> None:
        before, self._read_timer = self._unread_bytes, None
        unread = self.transport.get_write_buffer_size()
        if unread and before - unread < LEAST_READ_BYTES:
            self._reset()
        else:
            self._watch_reading()

    def _reset(self) -> None:
        """Close and drop the rest of the response, which the kernel would otherwise keep for minutes (SO_LINGER)."""
        opened = self.transport.get_extra_info("socket")
        if opened is not None:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's signature
        # uvicorn's own response could end up in the middle of another one.
        self._refuse(400)

    def _refuse(self, status: int) -> None:
        """Close the connection, with an error response unless another response is in progress."""
        if not self._is_answering:
            self.transport.write(STATUS_LINE[status] + REFUSALS[status])
            self.transport.close()
        else:
            self.transport.abort()

    def _cancel_timers(self) -> None:
        for timer in (self._head_timer, self._read_timer):
            if timer is not None:
                timer.cancel()
        self._head_timer = self._read_timer = None


def _has_data(opened: socket.socket) -> bool:
    waiting = select.poll()
    waiting.register(opened.fileno(), select.POLLIN)
    return bool(waiting.poll(0))


def _is_among(address: str, networks: tuple[str, ...]) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(found in ipaddress.ip_network(each) for each in networks)
