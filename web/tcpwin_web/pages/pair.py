"""Captures of both ends as a page: where packets were lost between them, and the ladder of a connection."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from fastapi.templating import Jinja2Templates

from tcpwin_web.api.parts import ServiceOf
from tcpwin_web.jobs.both_ends import tell_pairing
from tcpwin_web.pages.parts import show
from tcpwin_web.pages.two import HEIGHT, CaptureAsked, both_file_sets


def routes(templates: Jinja2Templates) -> APIRouter:
    """Make the route."""
    router = APIRouter()

    @router.get("/pair")
    async def show_pairing(
        request: Request,
        service: ServiceOf,
        a: CaptureAsked = "",
        b: CaptureAsked = "",
        connection: Annotated[int | None, Query(ge=0, lt=1 << 32)] = None,
    ) -> Response:
        captures = await service.captures.choices()
        told: Any = None
        # One capture alone may hold those of both ends.
        if file_sets := await both_file_sets(service, (a, b) if b else (a,)):
            told = await service.queue.run(tell_pairing, *file_sets)
        by_number = {each["number"]: each for each in told["connections"]} if told else {}
        return show(
            templates,
            request,
            "pair.html",
            captures=captures,
            told=told,
            asked={"a": a, "b": b},
            chosen=by_number.get(connection, next(iter(by_number.values()), None)),
            height=HEIGHT,
        )

    return router
