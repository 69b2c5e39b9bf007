"""The page of API tokens."""

from fastapi import APIRouter, Request
from fastapi.responses import Response
from fastapi.templating import Jinja2Templates

from tcpwin_web.api.parts import ServiceOf
from tcpwin_web.api.tokens import MOST_DAYS
from tcpwin_web.pages.parts import show


def routes(templates: Jinja2Templates) -> APIRouter:
    """Create the routes."""
    router = APIRouter()

    @router.get("/tokens")
    def show_tokens(request: Request, service: ServiceOf) -> Response:
        return show(templates, request, "tokens.html", tokens=service.tokens.list(), most_days=MOST_DAYS)

    return router
