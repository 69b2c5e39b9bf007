"""The page of a share link."""

from fastapi import APIRouter, Request
from fastapi.responses import Response
from fastapi.templating import Jinja2Templates

from tcpwin_web.api.parts import ServiceOf
from tcpwin_web.api.shares import Secret, open_link, read_shared
from tcpwin_web.pages.parts import show


def routes(templates: Jinja2Templates) -> APIRouter:
    """Create the route."""
    router = APIRouter()

    @router.get("/shared/{secret}")
    async def show_shared(request: Request, service: ServiceOf, secret: Secret) -> Response:
        document = await read_shared(service, await open_link(service, request, secret))
        return show(templates, request, "shared.html", document=document, secret=secret, is_guest=True)

    return router
