"""Serve an application over HTTP: print its address, open a browser there, and shut down in order.

A failure to start is reported in one sentence, never as a traceback.
"""

import gc
import ipaddress
import os
import socket
import sys
import threading
import time
import webbrowser
from types import FrameType

import click
import structlog
import uvicorn
from fastapi import FastAPI
from starlette.types import Message, Receive, Scope, Send

from tcpwin_web.connections import HEAD_SECONDS, Connection
from tcpwin_web.crowding import Crowd
from tcpwin_web.ledger import ACCEPTED_AT_ONCE, allow_files
from tcpwin_web.service import Service

GRACE_SECONDS = 4
"""Time for requests in progress when the server is asked to stop."""
END_SECONDS, BROWSER_SECONDS = 8.5, 0.5
"""Time until the process exits unconditionally: service managers kill it after ten seconds."""
BACKLOG = 2048
"""Connections that the kernel accepts before the service does."""
SWITCH_SECONDS = 0.0005
"""Python's thread switch interval. Each step of a query goes to a thread and back, and waits this long each time while
the event loop renders pages: Python's default, 5 ms, would be most of a busy service's time."""
log = structlog.get_logger("tcpwin.server")

BROWSER_VARIABLES = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")


def listen(app: FastAPI, host: str, port: int, *, opens: bool) -> int:
    """Serve until a signal; a second signal stops without waiting for requests. Return the exit status."""
    service: Service = app.state.service
    server = _Server(server_config(app, host, port), service, opens=opens)
    # Files written by this process and its workers are for their owner only.
    os.umask(0o077)
    allow_files()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        server.run()
    except KeyboardInterrupt:
        return 0
    return 0 if server.started else 1


def server_config(app: FastAPI, host: str, port: int) -> uvicorn.Config:
    """Return uvicorn's configuration, with this service's limits on connections."""
    service: Service = app.state.service

    async def app_with_reason(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_reason(message: Message) -> None:
            if message["type"] == "lifespan.startup.failed" and service.failure is not None:
                message = {**message, "message": service.failure}
            await send(message)

        await app(scope, receive, send_with_reason)

    return uvicorn.Config(
        app_with_reason,
        host=host,
        port=port,
        lifespan="on",
        log_config=None,
        server_header=False,
        http=_connection_class(service),
        loop="asyncio" if service.ledger.is_scarce else "auto",
        backlog=ACCEPTED_AT_ONCE if service.ledger.is_scarce else BACKLOG,
        ws="none",
        # The application has its own setting for trusted proxies.
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, service: Service, *, opens: bool) -> None:
        super().__init__(config)
        self._service = service
        self._opens = opens

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.started:
            return
        # The event loop accepts as many at once as its backlog says; the kernel may hold more, also those that have
        # sent nothing yet (tcp(7)), which need no descriptor then.
        for each in self.servers[0].sockets:
            with socket.socket(fileno=os.dup(each.fileno())) as listening:
                if sys.platform == "linux":
                    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, int(HEAD_SECONDS))
                listening.listen(BACKLOG)
        # Loaded modules stay for good: keep the garbage collector from scanning them each time.
        gc.collect()
        gc.freeze()
        address = _address(*self.servers[0].sockets[0].getsockname()[:2])
        click.echo(f"tcpwin's dashboard is at {address} (press Ctrl-C to stop)")
        if self._opens:
            _open(address)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self._service.is_ending:
            self._service.is_ending = True
            guard = threading.Timer(END_SECONDS, _end, args=(sig, self._service))
            guard.daemon = True
            guard.start()
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.begin_to_end()
        await super().shutdown(sockets)


def _connection_class(service: Service) -> type[Connection]:
    settings = service.settings

    class Limited(Connection):
        proxies = settings.trusted_proxies
        stall_seconds = settings.stall_seconds
        crowd = Crowd(service.ledger)

    return Limited


def _end(sig: int, service: Service) -> None:
    """Exit although work is still running: workers end with this process, and rows are as after a kill."""
    log.error("some work did not end in time and was abandoned", seconds=END_SECONDS)
    service.give_up_prints()
    time.sleep(BROWSER_SECONDS)
    os._exit(128 + sig)


def _address(host: str, port: int) -> str:
    found = ipaddress.ip_address(host.partition("%")[0])
    if found.is_unspecified:
        host = "127.0.0.1" if found.version == 4 else "::1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _open(address: str) -> None:
    """Open a page in the user's browser, if there is a screen or BROWSER names a program."""
    if sys.platform == "darwin" or any(os.environ.get(name) for name in BROWSER_VARIABLES):
        # webbrowser.open waits for some browsers until they exit.
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
