"""ASGI middleware: set the caller, for fair scheduling, and notice clients that leave before the answer."""

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tcpwin_web.slots import Caller, set_caller


class Calling:
    """Gives every request its `Caller`, as identified by `Access`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state = scope["state"]
        caller = Caller(state["caller"], state["is_guest"])
        set_caller(caller)
        listening = _Listening(receive, caller, has_body=_has_body(scope))
        try:
            await self._app(scope, listening.receive, send)
        finally:
            listening.end()


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
