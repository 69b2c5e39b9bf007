"""Captures in, the application out: its routes, its assets, its errors, its headers.

Binds nothing and reads no capture before a request asks for one.
"""

from collections.abc import Iterable, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from fastapi.templating import Jinja2Templates
from starlette.middleware.trustedhost import TrustedHostMiddleware

from tcpwin_web import _api, _pages, _problems
from tcpwin_web._captures import find_captures
from tcpwin_web._headers import SecurityHeaders

LOOPBACK_HOSTS = ("127.0.0.1", "[::1]", "localhost")


def create_app(captures: Iterable[str | Path], *, allowed_hosts: Sequence[str] = LOOPBACK_HOSTS) -> FastAPI:
    """Make the application that shows the given captures (files, or folders of captures)."""
    package = Path(str(files("tcpwin_web")))
    templates = Jinja2Templates(package / "templates")
    _pages.add_filters(templates)

    # The documentation pages of FastAPI load their scripts from another host.
    app = FastAPI(
        title="tcpwin",
        version=version("tcpwin-web"),
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    app.state.captures = find_captures(captures)
    app.include_router(_api.router)
    app.include_router(_pages.routes(templates))
    app.add_api_route("/static/plotly.min.js", _send_plotly, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=package / "static"))
    _problems.install(app, templates)
    # A page of another site must not reach a loopback service through a name of its own (DNS rebinding).
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(allowed_hosts))
    app.add_middleware(SecurityHeaders)
    return app


def _send_plotly() -> FileResponse:
    return FileResponse(str(files("plotly") / "package_data" / "plotly.min.js"), media_type="text/javascript")
