"""ASGI middleware: count and time requests by endpoint, not by path, which may contain a secret."""

import time
from typing import Any

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tcpwin_web import metrics
from tcpwin_web.tracing import failed, set_attributes, tracing

log = structlog.get_logger("tcpwin.http")


def _name(endpoint: Any) -> str:
    """Return a name such as ``api.captures.list_captures``; empty if no route matches."""
    name = getattr(endpoint, "__name__", None)
    if name is None:
        return "none"
    return f"{endpoint.__module__.removeprefix('tcpwin_web.')}.{name}"


def _name_span(span: Any, method: str, endpoint: str, status: int) -> None:
    """Name a request's span by its endpoint (OpenTelemetry, semantic conventions for HTTP spans)."""
    if span is not None:
        span.update_name(f"{method} {endpoint}")
        if status >= 500:
            failed(span)
        set_attributes(span, http__request__method=method, http__route=endpoint, http__response__status_code=status)


class Observed:
    """The outermost middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            with tracing.request(scope["headers"]) as span:
                try:
                    await self._app(scope, receive, watch)
                finally:
                    _name_span(span, scope["method"], _name(scope.get("endpoint")), status)
        finally:
            seconds = time.perf_counter() - began
            endpoint = _name(scope.get("endpoint"))
            metrics.REQUESTS.labels(scope["method"], endpoint, str(status)).inc()
            metrics.REQUEST_SECONDS.labels(endpoint).observe(seconds)
            log.info("request", method=scope["method"], endpoint=endpoint, status=status, ms=round(seconds * 1000, 1))
