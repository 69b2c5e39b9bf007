"""The page of a share link."""

from fastapi import APIRouter, Request
from fastapi.responses import Response
from fastapi.templating import Jinja2Templates

from tcpwin_web.api.parts import ServiceOf
from tcpwin_web.api.shares import Secret, open_link, read_shared
from tcpwin_web.pages.parts import settings_of, show


def routes(templates: Jinja2Templates) -> APIRouter:
    """Create the route."""
    router = APIRouter()

    @router.get("/shared/{secret}")
    async def show_shared(request: Request, service: ServiceOf, secret: Secret) -> Response:
        document = await read_shared(service, await open_link(service, request, secret))
        worst = document["glance"] and document["glance"]["id"]
        of_worst = (each for each in document["findings"] if each["connection"] == worst)
        settings = [] if worst is None else settings_of(document["verdict"], of_worst)
        return show(
            templates, request, "shared.html", document=document, settings=settings, secret=secret, is_guest=True
        )

    return router
