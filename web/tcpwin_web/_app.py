"""Build the application from the settings: routes, assets, errors, middleware.

Opens no socket; the data folder and the database are opened when the application starts.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter, FastAPI
from fastapi.templating import Jinja2Templates
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from tcpwin_web import api, pages, problems
from tcpwin_web.api.parts import ARROW
from tcpwin_web.api.reports import MEDIA
from tcpwin_web.api.resumable import TusHeaders
from tcpwin_web.api.slices import MEDIA as SLICE_MEDIA
from tcpwin_web.assets import PREFIX, send_asset
from tcpwin_web.audit import Seen
from tcpwin_web.head import HeadAsGet
from tcpwin_web.headers import SecurityHeaders
from tcpwin_web.jobs import Executor
from tcpwin_web.observe import Observed
from tcpwin_web.security.access import Access
from tcpwin_web.security.bodies import BodyLimits
from tcpwin_web.security.calling import Calling
from tcpwin_web.service import Service
from tcpwin_web.settings import Settings
from tcpwin_web.tracing import tracing

FORM_BYTES = 1 << 20
"""Maximum size of an upload form without its files."""
PACKED_FROM_BYTES = 1024
PACKING = 5
"""gzip level: a higher one takes longer than it saves on a fast network."""
NOT_PACKED = (*DEFAULT_EXCLUDED_CONTENT_TYPES, MEDIA["pdf"], SLICE_MEDIA, ARROW)
"""Event streams, and formats that are compressed already or do not compress."""


def create_app(settings: Settings, shown: Sequence[Path] = (), *, executor: Executor | None = None) -> FastAPI:
    """Create the application.

    Args:
        shown: captures or bundles to show from the start.
        executor: runs analyses; by default in processes on this machine.
    """
    service = Service(settings, shown, executor)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        tracing.start()
        try:
            await service.start()
            try:
                yield
            finally:
                await service.stop()
        finally:
            await asyncio.to_thread(tracing.stop)

    # FastAPI's documentation pages load their scripts from another host.
    app = FastAPI(
        title="tcpwin",
        version=version("tcpwin-web"),
        openapi_url=f"{api.PREFIX}/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.service = service
    app.state.templates = _templates()
    app.router.routes.extend(_routes().routes)
    app.add_api_route(f"{PREFIX}{{name:path}}", send_asset, include_in_schema=False)
    problems.install(app)
    # The middleware added last is outermost.
    app.add_middleware(
        GZipMiddleware, minimum_size=PACKED_FROM_BYTES, compresslevel=PACKING, exclude_content_types=NOT_PACKED
    )
    app.add_middleware(HeadAsGet, streams=api.STREAM_ENDINGS)
    app.add_middleware(Seen, audit=service.audit)
    app.add_middleware(
        BodyLimits,
        uploads=api.UPLOADS,
        form_bytes=settings.max_upload_bytes + FORM_BYTES,
        stall_seconds=settings.stall_seconds,
    )
    app.add_middleware(Calling, gate=service.gate, turns=service.turns)
    app.add_middleware(TusHeaders)
    app.add_middleware(Access, gate=service.gate, rates=service.rates, audit=service.audit)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(Observed)
    if settings.trusted_proxies:
        app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=list(settings.trusted_proxies))
    return app


def _package() -> Path:
    return Path(str(files("tcpwin_web")))


@cache
def _templates() -> Jinja2Templates:
    return Jinja2Templates(env=pages.environment(_package() / "templates"))


@cache
def _routes() -> APIRouter:
    """Return the routes of the API and of the pages, shared by all applications: creating them takes half a second."""
    router = APIRouter()
    router.include_router(api.routes())
    router.include_router(pages.routes(_templates()))
    return router
