"""The pages: rendered on the server, with scripts for interaction. The page of a huge capture stays small."""

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from fastapi.templating import Jinja2Templates

from tcpwin_web.pages import (
    captures,
    compare,
    connection,
    fleet,
    following,
    history,
    login,
    pair,
    references,
    rules,
    shared,
    tokens,
    whatif,
)
from tcpwin_web.pages.filters import environment

__all__ = ["environment", "routes"]


def routes(templates: Jinja2Templates) -> APIRouter:
    """Return the routes of all pages, rendered with the given templates."""
    router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
    for each in (
        captures,
        compare,
        connection,
        history,
        login,
        pair,
        references,
        rules,
        shared,
        tokens,
        whatif,
        fleet,
        following,
    ):
        router.include_router(each.routes(templates))
    return router
