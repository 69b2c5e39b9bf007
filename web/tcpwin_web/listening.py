"""An application in, a server that listens out: says where it is, opens a browser there, ends in good order.

What keeps it from starting is told in one sentence, never as a traceback.
"""

import ipaddress
import os
import sys
import threading
import webbrowser
from socket import socket
from types import FrameType

import click
import uvicorn
from fastapi import FastAPI
from starlette.types import Message, Receive, Scope, Send

from tcpwin_web.service import Service

GRACE_SECONDS = 10
"""For requests that are being answered when the server is told to end."""
BROWSER_VARIABLES = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")


def listen(app: FastAPI, host: str, port: int, *, opens: bool) -> int:
    """Serve until a signal says to end (again at once: without waiting for anybody); return the exit status."""
    service: Service = app.state.service

    async def app_with_reason(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_reason(message: Message) -> None:
            if message["type"] == "lifespan.startup.failed" and service.failure is not None:
                message = {**message, "message": service.failure}
            await send(message)

        await app(scope, receive, send_with_reason)

    config = uvicorn.Config(
        app_with_reason,
        host=host,
        port=port,
        lifespan="on",
        log_config=None,
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    server = _Server(config, service, opens=opens)
    try:
        server.run()
    except KeyboardInterrupt:
        return 0
    return 0 if server.started else 1


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, service: Service, *, opens: bool) -> None:
        super().__init__(config)
        self._service = service
        self._opens = opens

    async def startup(self, sockets: list[socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.started:
            return
        address = _address(*self.servers[0].sockets[0].getsockname()[:2])
        click.echo(f"tcpwin's dashboard is at {address} until Ctrl-C ends it.")
        if self._opens:
            _open(address)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._service.is_ending = True
        super().handle_exit(sig, frame)


def _address(host: str, port: int) -> str:
    found = ipaddress.ip_address(host.partition("%")[0])
    if found.is_unspecified:
        host = "127.0.0.1" if found.version == 4 else "::1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _open(address: str) -> None:
    """Show a page in the user's browser; without a screen there is none, but one for the terminal, which has a use."""
    if sys.platform == "darwin" or any(os.environ.get(name) for name in BROWSER_VARIABLES):
        # Some browsers are waited for until they end.
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
