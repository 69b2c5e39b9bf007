"""Security headers of every response, errors included.

Only the service's own scripts, styles and connections are allowed; no page relaxes this.
"""

import base64
import hashlib

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tcpwin.figures import THEMES
from tcpwin_web.assets import PREFIX


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# plotly.js creates an empty <style> element, which it fills by CSSOM, and style attributes in the texts of figures: of
# <b>, and of <span style>, whose color it turns into SVG's.
_PLOTLY_STYLES = (
    "",
    "font-weight:bold",
    *(f"font-size:11px; fill:{theme.faint_text}" for theme in THEMES.values()),
)

HEADERS = {
    "Content-Security-Policy": "; ".join(
        [
            "default-src 'none'",
            "script-src 'self'",
            f"style-src 'self' 'unsafe-hashes' {' '.join(map(_hash, _PLOTLY_STYLES))}",
            # Saving a figure as an image goes through a data or blob address.
            "img-src 'self' data: blob:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'self'",
            "frame-ancestors 'none'",
        ]
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # With no-referrer, browsers send "Origin: null" with the service's own forms, which are then refused.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}

NOT_STORED = "no-store"
"""Deleted data, or pages seen before a logout, must not stay in a browser or a cache."""


class SecurityHeaders:
    """ASGI middleware: add `HEADERS` to each response as it starts."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                if not scope["path"].startswith(PREFIX):
                    headers["Cache-Control"] = NOT_STORED
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)
