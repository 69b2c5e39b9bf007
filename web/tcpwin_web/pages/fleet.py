"""The page of a data set of `tcpwin fleet run`: limits of its connections, and the worst of them.

Every request queries the data set's folder with DuckDB.
"""

from typing import Any, Literal, get_args

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import Response
from fastapi.templating import Jinja2Templates

from tcpwin.errors import TcpwinError
from tcpwin.fleet import Dataset, asked, limits_by, totals, unreadable, worst_connections
from tcpwin.limits import LIMIT_NAMES
from tcpwin_web.api.parts import service_of
from tcpwin_web.pages.parts import show

ROWS = 20
By = Literal["limit", "pair", "subnet", "port", "hour", "day", "site", "kernel"]


def routes(templates: Jinja2Templates) -> APIRouter:
    """Create the routes."""
    router = APIRouter()

    @router.get("/fleet")
    def show_fleet(request: Request, by: By = "limit") -> Response:
        folder = service_of(request).settings.fleet
        if folder is None:
            raise HTTPException(404, "No data set is shown: TCPWIN_FLEET=FOLDER names one of `tcpwin fleet run`.")
        try:
            with asked(Dataset.open(folder)) as database:
                found: dict[str, Any] = {
                    "totals": totals(database),
                    "limits": limits_by(database, by, ROWS),
                    "worst": worst_connections(database, ROWS),
                    "errors": unreadable(database, ROWS),
                }
        except TcpwinError as error:
            raise HTTPException(503, f"{error}.", {"Retry-After": "5"}) from None
        return show(templates, request, "fleet.html", by=by, groups=get_args(By), names=LIMIT_NAMES, **found)

    return router
