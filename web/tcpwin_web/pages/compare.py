"""The comparison page of two captures of the same workload: better or worse, connection by connection."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from fastapi.templating import Jinja2Templates

from tcpwin import figures
from tcpwin.render import NAMES, view_change
from tcpwin.units import time_text
from tcpwin_web.api.parts import ServiceOf
from tcpwin_web.jobs.answers import MOST_PAIRS, compare_file_sets
from tcpwin_web.pages.parts import show
from tcpwin_web.pages.two import HEIGHT, CaptureChoice, both_file_sets

TOLERANCE = 0.1


def routes(templates: Jinja2Templates) -> APIRouter:
    """Create the route."""
    router = APIRouter()

    @router.get("/compare")
    async def show_comparison(
        request: Request,
        service: ServiceOf,
        old: CaptureChoice = "",
        new: CaptureChoice = "",
        pair: Annotated[int, Query(ge=0, lt=MOST_PAIRS)] = 0,
    ) -> Response:
        captures = await service.captures.choices()
        comparison: Any = None
        if file_sets := await both_file_sets(service, (old, new)):
            comparison = await service.queue.run(compare_file_sets, *file_sets, TOLERANCE)
        pairs = comparison["pairs"][:MOST_PAIRS] if comparison else []
        return show(
            templates,
            request,
            "compare.html",
            captures=captures,
            comparison=comparison,
            query={"old": old, "new": new},
            pairs=pairs,
            names=_names(pairs),
            changes_of_pairs=[{each["name"]: view_change(**each) for each in one["changes"]} for one in pairs],
            chosen=pair if pair < len(pairs) else 0,
            kinds=[kind for kind in map(figures.get, figures.names("connection")) if kind.has_time_axis],
            cost_text=lambda cost_ns: time_text(cost_ns) if cost_ns else "–",
            height=HEIGHT,
        )

    return router


def _names(pairs: list[dict[str, Any]]) -> dict[str, str]:
    """Return the quantities with a value in any pair, with their labels."""
    known = {each["name"] for one in pairs for each in one["changes"] if each["old"] or each["new"]}
    return {name: words for name, words in NAMES.items() if name in known}
