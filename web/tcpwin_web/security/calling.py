"""ASGI middleware: set the caller, let callers take turns, and notice clients that leave or lose their access.

The event loop makes all answers: without turns, whoever sends the most requests would get most of it. An open stream,
upload or print ends soon after its token or login is revoked, has expired, or is logged out.
"""

import asyncio

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tcpwin_web import problems
from tcpwin_web.security.access import OPEN_PATHS, Gate
from tcpwin_web.security.scopes import Scope as Rights
from tcpwin_web.slots import RETRY_SECONDS, BusyError, Caller, FairSemaphore, GoneError, Turn, set_caller, waiting

DROP = "tcpwin.drop"
"""Key of an ASGI scope: closes the client's connection."""
CHECK_SECONDS = 0.4
"""Interval at which the access of open requests is checked again."""


class Calling:
    """Gives every request its `Caller`, as identified by `Access`."""

    def __init__(self, app: ASGIApp, gate: Gate, turns: FairSemaphore) -> None:
        self._app = app
        self._gate = gate
        self._turns = turns
        self._open: dict[Caller, Scope] = {}
        """Requests in progress whose caller can lose access."""
        self._watching: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state = scope["state"]
        is_owner = state["scope"] is Rights.ADMIN
        caller = Caller(state["caller"], state["is_guest"], is_owner, state["credential"])
        set_caller(caller)
        listening = _Listening(receive, caller, has_body=_has_body(scope))
        if state["credential"]:
            self._open[caller] = scope
            if self._watching is None or self._watching.done():
                self._watching = asyncio.create_task(self._watch())
        turn = Turn(self._turns)

        async def send_and_end(message: Message) -> None:
            # The answer is ready: sending it takes no turn, however slow the client is.
            await turn.end()
            await send(message)

        try:
            if scope["path"] not in OPEN_PATHS:
                await turn.begin()
            await self._app(scope, listening.receive, send_and_end)
        except BusyError as error:
            headers = {"Retry-After": str(RETRY_SECONDS)}
            await problems.respond(Request(scope), 503, f"{error}.".capitalize(), headers=headers)(scope, receive, send)
        except GoneError:
            await problems.respond(Request(scope), 499, problems.GONE)(scope, receive, send)
        finally:
            await turn.end()
            listening.end()
            self._open.pop(caller, None)

    async def _watch(self) -> None:
        """End requests whose caller loses access, while there are any; check each token and cookie once."""
        while self._open:
            await asyncio.sleep(CHECK_SECONDS)
            valid: dict[tuple[tuple[bytes, bytes], ...], bool] = {}
            for caller, scope in tuple(self._open.items()):
                shown = tuple(each for each in scope["headers"] if each[0] in (b"authorization", b"cookie"))
                if shown not in valid:
                    valid[shown] = self._gate.identify(Request(scope)) is not None
                if not valid[shown]:
                    del self._open[caller]
                    caller.gone.set()
                    scope.get(DROP, lambda: None)()


class _Listening:
    """Passes on the body; after its end, waits for the client to disconnect."""

    def __init__(self, receive: Receive, caller: Caller, *, has_body: bool) -> None:
        self._receive = receive
        self._caller = caller
        self._watching: asyncio.Task[None] | None = None
        self._first: Message | None = None
        if not has_body:
            self._first = {"type": "http.request", "body": b"", "more_body": False}
            self._watch()

    async def receive(self) -> Message:
        if self._first is not None:
            message, self._first = self._first, None
            return message
        if self._watching is not None:
            await self._caller.gone.wait()
            return {"type": "http.disconnect"}
        async with waiting():
            message = await self._receive()
        if message["type"] == "http.disconnect":
            self._caller.gone.set()
        elif not message.get("more_body", False):
            self._watch()
        return message

    def end(self) -> None:
        if self._watching is not None:
            self._watching.cancel()

    def _watch(self) -> None:
        self._watching = asyncio.create_task(self._await_going())

    async def _await_going(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._caller.gone.set()


def _has_body(scope: Scope) -> bool:
    return any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])
