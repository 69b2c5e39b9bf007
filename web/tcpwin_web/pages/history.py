"""The pages of the search over all captures, and of the history of two hosts or a tag."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import Response
from fastapi.templating import Jinja2Templates

from tcpwin.limits import LIMIT_NAMES
from tcpwin.model import LimitName
from tcpwin_web.api.history import Port
from tcpwin_web.api.parts import Offset, ServiceOf, Words
from tcpwin_web.history import AddressError, Found, Point, Question, judge_change
from tcpwin_web.pages.parts import show

PAGE_ROWS = 100
WIDTH, HEIGHT = 1000, 100
"""Size of a panel in the units of its viewBox."""
MOST_BAR_WIDTH = 60


@dataclass(frozen=True)
class Bar:
    """One capture in a panel of the figure."""

    x: float
    y: float
    width: float
    height: float
    text: str


def bars(values: list[float | None], most: float, texts: list[str]) -> list[Bar]:
    """Return bars of equal width, oldest capture on the left; unknown values have none."""
    step = min(WIDTH / max(len(values), 1), MOST_BAR_WIDTH * 1.5)
    width = step * 2 / 3
    found = []
    for number, (value, text) in enumerate(zip(values, texts, strict=True)):
        if value is not None:
            # Keep a value of 0 visible.
            height = max(HEIGHT * value / most, 1.0) if most else 1.0
            x = number * step + (step - width) / 2
            found.append(Bar(round(x, 1), round(HEIGHT - height, 1), round(width, 1), round(height, 1), text))
    return found


def routes(templates: Jinja2Templates) -> APIRouter:
    """Create the routes."""
    router = APIRouter()

    @router.get("/search")
    async def show_search(
        request: Request,
        service: ServiceOf,
        address: Annotated[Words, Query(max_length=64)] = "",
        port: Annotated[str, Query(pattern=r"^[0-9]{0,5}$")] = "",
        host: Annotated[Words, Query(max_length=255)] = "",
        limited_by: Annotated[Literal[""] | LimitName, Query()] = "",
        tag: Annotated[Words, Query(max_length=64)] = "",
        offset: Offset = 0,
    ) -> Response:
        conditions = Question(
            address.strip(), int(port) if port else None, host.strip(), limited_by, tag.strip().lower()
        )
        found: Sequence[Found] = ()
        total, wrong = 0, None
        try:
            found, total = await service.history.search(conditions, offset=offset, limit=PAGE_ROWS)
        except AddressError as error:
            # Shown in place of the list while the address is being typed.
            wrong = str(error)
        fields = {"address": address, "port": port, "host": host, "limited_by": limited_by, "tag": tag}
        return show(
            templates,
            request,
            "search.html",
            found=found,
            total=total,
            wrong=wrong,
            query={**fields, "offset": offset},
            size=PAGE_ROWS,
            limits=LIMIT_NAMES,
            tags=await service.captures.tags(),
            has_conditions=bool(conditions),
        )

    @router.get("/history")
    async def show_history(
        request: Request,
        service: ServiceOf,
        a: Annotated[Words, Query(max_length=64)] = "",
        b: Annotated[Words, Query(max_length=64)] = "",
        port: Port = None,
        tag: Annotated[Words, Query(max_length=64)] = "",
    ) -> Response:
        if tag:
            points = await service.history.of_tag(tag.strip().lower())
        elif a and b:
            points = await service.history.of_pair(a, b, port=port)
        else:
            raise HTTPException(422, "Name two hosts (a and b), or a tag.")
        # Two ends of one connection are neither better nor worse than each other.
        changes = [None if are_ends(*both) else judge_change(*both) for both in pairwise(points)]
        return show(
            templates,
            request,
            "history.html",
            points=points,
            changes=[None, *changes],
            panels=_panels(points),
            size=(WIDTH, HEIGHT),
            limits=LIMIT_NAMES,
            query={"a": a, "b": b, "port": port, "tag": tag},
        )

    return router


def are_ends(one: Point, other: Point) -> bool:
    """Whether two captures are from one bundle."""
    return one.capture.bundle_id is not None and one.capture.bundle_id == other.capture.bundle_id


def _panels(points: list[Point]) -> dict[str, tuple[list[Bar], float]]:
    """Return the figure's panels by quantity, each with its bars and the value at its top."""
    names = [point.capture.name for point in points]
    fastest = float(max((point.rate_bps or 0 for point in points), default=0))
    return {
        "lost": (bars([point.lost_share for point in points], 1.0, names), 1.0),
        "rate": (bars([point.rate_bps for point in points], fastest, names), fastest),
    }
