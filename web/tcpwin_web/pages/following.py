"""Forward the server-sent events of a recorder on this host to pages.

Connects to the address of `tcpwin watch --metrics PORT`, and stores nothing.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import Response, StreamingResponse
from fastapi.templating import Jinja2Templates

from tcpwin_web.api.parts import service_of
from tcpwin_web.pages.parts import show
from tcpwin_web.service import Service
from tcpwin_web.slots import current_caller

ANSWER_SECONDS = 5.0
LOOK_SECONDS = 1.0
"""Interval at which a stream checks whether the service ends."""
MOST_LINE_BYTES = 1 << 20
AWAY = b"event: away\ndata: {}\n\n"
"""The recorder does not answer, or has ended; browsers reconnect by themselves."""


def routes(templates: Jinja2Templates) -> APIRouter:
    """Create the routes."""
    router = APIRouter()

    @router.get("/watch")
    def show_watch(request: Request) -> Response:
        return show(templates, request, "watch.html", address=_address(request))

    async def holding(request: Request) -> AsyncIterator[None]:
        with service_of(request).followers.hold():
            yield

    @router.get("/watch/events", dependencies=[Depends(holding)])
    async def follow(request: Request) -> Response:
        _address(request)
        return StreamingResponse(
            _events(service_of(request)), media_type="text/event-stream", headers={"Cache-Control": "no-store"}
        )

    return router


def _address(request: Request) -> str:
    address = service_of(request).settings.watch
    if address is None:
        raise HTTPException(404, "No recorder is followed: TCPWIN_WATCH=http://127.0.0.1:PORT names one.")
    return address


async def _events(service: Service) -> AsyncIterator[bytes]:
    """Yield the recorder's events until it or the service ends."""
    host, port = service.settings.watch_place
    try:
        opening = asyncio.open_connection(host, port, limit=MOST_LINE_BYTES)
        reader, writer = await asyncio.wait_for(opening, ANSWER_SECONDS)
    except (OSError, TimeoutError):
        yield AWAY
        return
    try:
        writer.write(f"GET /events HTTP/1.0\r\nHost: {host}:{port}\r\n\r\n".encode())
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), ANSWER_SECONDS)
        if head.split(maxsplit=2)[1:2] == [b"200"]:
            reading = asyncio.ensure_future(reader.readline())
            caller = current_caller()
            while not service.is_ending and not caller.gone.is_set():
                await asyncio.wait((reading,), timeout=LOOK_SECONDS)
                if reading.done():
                    line = reading.result()
                    if not line:
                        break
                    yield line
                    reading = asyncio.ensure_future(reader.readline())
            reading.cancel()
        yield b"\n" + AWAY
    except (OSError, TimeoutError, ValueError, EOFError):
        yield b"\n" + AWAY
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
