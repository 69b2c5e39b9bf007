"""ASGI middleware: answer HEAD as GET, with the same head and no content (RFC 9110 section 9.3.2).

But for streams, which have no end: they answer GET alone.
"""

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HeadAsGet:
    """Asks the application with GET and leaves the content out."""

    def __init__(self, app: ASGIApp, streams: tuple[str, ...]) -> None:
        self._app = app
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD" or scope["path"].endswith(self._streams):
            await self._app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        asked = {**scope, "method": "GET"}
        await self._app(asked, receive, send_head)
        # What answered is counted by its name.
        scope["endpoint"] = asked.get("endpoint")
