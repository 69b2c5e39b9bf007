"""The page of captures of both ends: packets lost between them, and the ladder of a connection."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from fastapi.templating import Jinja2Templates

from tcpwin_web.api.parts import ServiceOf
from tcpwin_web.jobs.both_ends import describe_pairing
from tcpwin_web.pages.parts import show
from tcpwin_web.pages.two import HEIGHT, CaptureChoice, both_file_sets


def routes(templates: Jinja2Templates) -> APIRouter:
    """Create the route."""
    router = APIRouter()

    @router.get("/pair")
    async def show_pairing(
        request: Request,
        service: ServiceOf,
        a: CaptureChoice = "",
        b: CaptureChoice = "",
        connection: Annotated[int | None, Query(ge=0, lt=1 << 32)] = None,
    ) -> Response:
        captures = await service.captures.choices()
        pairing: Any = None
        # A single capture may contain both ends.
        if file_sets := await both_file_sets(service, (a, b) if b else (a,)):
            pairing = await service.queue.run(describe_pairing, *file_sets)
        by_number = {each["number"]: each for each in pairing["connections"]} if pairing else {}
        return show(
            templates,
            request,
            "pair.html",
            captures=captures,
            pairing=pairing,
            query={"a": a, "b": b},
            chosen=by_number.get(connection, next(iter(by_number.values()), None)),
            height=HEIGHT,
        )

    return router
