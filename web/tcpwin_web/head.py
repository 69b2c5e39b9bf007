"""ASGI middleware: answer HEAD as GET, with the same head and no content (RFC 9110 section 9.3.2).

Except for streams, which never end: they answer only GET.
"""

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HeadAsGet:
    """Passes HEAD requests on as GET and drops the content."""

    def __init__(self, app: ASGIApp, streams: tuple[str, ...]) -> None:
        self._app = app
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD" or scope["path"].endswith(self._streams):
            await self._app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        as_get = {**scope, "method": "GET"}
        await self._app(as_get, receive, send_head)
        # `Observed` counts requests by endpoint.
        scope["endpoint"] = as_get.get("endpoint")
