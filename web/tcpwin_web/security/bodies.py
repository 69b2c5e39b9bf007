"""ASGI middleware: limit the size of request bodies, and how slowly they may arrive; refuse encoded ones.

Uploads have their own size limits; they end if next to nothing arrives for a while. All other bodies are short and
must arrive soon. Nobody holds a connection, or what belongs to it, by sending nothing.
"""

import asyncio
import re

from fastapi import HTTPException, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tcpwin_web import problems

MAX_BODY_BYTES = 1 << 20
ENCODED = "Request bodies may not have a Content-Encoding. A compressed capture is recognised by its content."
LEAST_BYTES = 4096
"""Minimum number of bytes of an upload that must arrive per stall timeout: a modem is a hundred times faster."""


class BodyLimits:
    """Refuses long bodies that are not uploads, and ends bodies that stall."""

    def __init__(self, app: ASGIApp, uploads: re.Pattern[str], form_bytes: int, stall_seconds: float) -> None:
        """Create the middleware.

        Args:
            uploads: paths whose bodies are files.
            form_bytes: size limit of such a body: a form is stored in a temporary file before it can be checked.
        """
        self._app = app
        self._uploads = uploads
        self._form_bytes = form_bytes
        self._stall_seconds = stall_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            answer = problems.respond(request, 415, ENCODED, headers={"Accept-Encoding": "identity"})
            await answer(scope, receive, send)
            return
        is_upload = self._uploads.fullmatch(scope["path"])
        seconds = self._stall_seconds
        body = _Upload(receive, self._form_bytes, seconds) if is_upload else _Short(receive, seconds)
        await self._app(scope, body.receive, send)


class _Short:
    """A body with a size limit and a deadline."""

    def __init__(self, receive: Receive, seconds: float) -> None:
        self._receive = receive
        self._seconds = seconds
        self._until: float | None = None
        self._received = 0
        self._is_whole = False

    async def receive(self) -> Message:
        if self._is_whole:
            return await self._receive()
        now = asyncio.get_running_loop().time()
        self._until = self._until or now + self._seconds
        message = await _within(self._receive, self._until - now, self._seconds)
        self._received += len(message.get("body", b""))
        self._is_whole = not message.get("more_body", False)
        if self._received > MAX_BODY_BYTES:
            raise HTTPException(413, f"The request body is larger than {MAX_BODY_BYTES:,} bytes.")
        return message


class _Upload:
    """A body of any length that must keep arriving."""

    def __init__(self, receive: Receive, most_bytes: int, seconds: float) -> None:
        self._receive = receive
        self._most_bytes = most_bytes
        self._seconds = seconds
        self._received = 0
        self._left_bytes, self._left_seconds = LEAST_BYTES, seconds
        self._is_whole = False

    async def receive(self) -> Message:
        if self._is_whole:
            return await self._receive()
        loop = asyncio.get_running_loop()
        # Only time spent waiting for the client counts.
        began = loop.time()
        message = await _within(self._receive, self._left_seconds, self._seconds)
        self._left_seconds -= loop.time() - began
        size = len(message.get("body", b""))
        self._received += size
        if self._received > self._most_bytes:
            raise HTTPException(413, f"An upload may have {self._most_bytes:,} bytes at most.")
        self._left_bytes -= size
        if self._left_bytes <= 0:
            self._left_bytes, self._left_seconds = LEAST_BYTES, self._seconds
        self._is_whole = not message.get("more_body", False)
        return message


async def _within(receive: Receive, seconds: float, allowed: float) -> Message:
    try:
        async with asyncio.timeout(max(seconds, 0)):
            return await receive()
    except TimeoutError:
        detail = f"The request stalled: nothing, or next to nothing, arrived for {allowed:g} seconds."
        # Later bytes are not a request.
        raise HTTPException(408, detail, {"Connection": "close"}) from None
