"""API v1: every page's data, as JSON and, for tables and series, as Arrow."""

import re

from fastapi import APIRouter, Depends

from tcpwin_web import problems
from tcpwin_web.api import (
    captures,
    connections,
    figures,
    findings,
    history,
    notes,
    operation,
    references,
    reports,
    resumable,
    shares,
    slices,
    tokens,
    twin,
    uploads,
    whatif,
)
from tcpwin_web.api.strict import refuse_unknown

PREFIX = "/api/v1"
UPLOADS = re.compile(r".*/(uploads|files|upload)|.*/uploads/[^/]+")
"""Paths whose request bodies are files, with their own size limits."""
STREAM_ENDINGS = ("/progress",)


def routes() -> APIRouter:
    """Return all routes of the API."""
    router = APIRouter(prefix=PREFIX, responses=problems.RESPONSES, dependencies=[Depends(refuse_unknown)])
    for each in (
        captures,
        uploads,
        resumable,
        connections,
        figures,
        findings,
        references,
        reports,
        slices,
        shares,
        notes,
        tokens,
        history,
        whatif,
        twin,
    ):
        router.include_router(each.router)
    router.include_router(operation.api)
    everything = APIRouter()
    everything.include_router(router)
    everything.include_router(operation.router)
    return everything
