"""Findings of a capture, and the rules that report them."""

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Path, Query, Response

from tcpwin.limits import Severity, all_rules, describe_page, describe_rule, plain
from tcpwin_web.api.parts import Analysed, Limit, Offset, ServiceOf, as_json
from tcpwin_web.results import queries

router = APIRouter(tags=["findings"])


@router.get("/captures/{capture_id}/findings")
async def list_findings(
    service: ServiceOf,
    capture: Analysed,
    connection: Annotated[int | None, Query(ge=0, le=(1 << 32) - 1)] = None,
    code: Annotated[str, Query(max_length=10, description="a rule's code, or its beginning", examples=["TW1"])] = "",
    severity: Annotated[Literal["info", "warning", "error"], Query(description="at least")] = "info",
    offset: Offset = 0,
    limit: Limit = 100,
) -> Response:
    """List findings, costliest first: evidence with frames, cost, owner, remedy."""
    found, total = await asyncio.to_thread(
        queries.list_findings,
        service.data.results(capture.id),
        connection=connection,
        code=code.upper() or None,
        severity=int(Severity[severity.upper()]),
        offset=offset,
        limit=limit,
    )
    return as_json({"total": total, "findings": found})


@router.get("/rules")
def list_rules() -> Response:
    """List the rules with their thresholds."""
    return as_json({"rules": [plain(describe_rule(rule)) for rule in all_rules().values()]})


@router.get("/rules/{code}")
def show_rule(code: Annotated[str, Path(max_length=10, examples=["TW201"])]) -> Response:
    """Return one rule with its page: what it finds, how it is judged, when it is wrong, what to do."""
    rule: Any = all_rules().get(code.upper())
    if rule is None:
        raise HTTPException(404, "No rule has this code; /api/v1/rules lists them.")
    return as_json(plain(describe_page(rule)))
