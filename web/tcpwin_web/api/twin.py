"""Twins: run a connection in the lab's kernel, unchanged and with a change."""

import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from pydantic import BaseModel, Field

from tcpwin.figures import Progress, plain_progress
from tcpwin.lab import SERIES
from tcpwin_web.api.figures import AS_PICTURE, FormAsked, ThemeName, answer
from tcpwin_web.api.parts import ConnectionId, Having, ServiceOf
from tcpwin_web.api.whatif import Lift, Loss, Rate, RoundTrip, Settings, parse_changes
from tcpwin_web.jobs.whatif import WhatIfQuery
from tcpwin_web.twins import Status, TwinState

router = APIRouter(tags=["what if"])
PLACE = "/captures/{capture_id}/connections/{connection_id}/twin"


class TwinProgress(BaseModel):
    """Progress of the runs."""

    run: Annotated[int, Field(description="1: unchanged; 2: with the change")]
    runs: int
    elapsed_ns: Annotated[int, Field(description="time of this run by its own clock")]
    share: Annotated[float, Field(description="progress of both runs, from 0 to 1")]


class TwinDocument(BaseModel):
    """State and result of a twin."""

    status: Status
    progress: TwinProgress | None
    failure: Annotated[str | None, Field(description="reason for a failure")]
    twin: Annotated[
        dict[str, Any] | None,
        Field(
            description="the `twin` of `tcpwin whatif --twin --json`, and `rows`: the behaviour of "
            "the capture, its twin and the changed twin, side by side"
        ),
    ]
    kernels: Annotated[list[str], Field(description="kernels of the lab built on this server; empty: no twin can run")]


def asked_of(
    setting: Settings = [],  # noqa: B006 - FastAPI copies it
    lift: Lift = [],  # noqa: B006 - as above
    loss_percent: Loss = None,
    rtt_ms: RoundTrip = None,
    rate_mbps: Rate = None,
) -> WhatIfQuery:
    """Return the changes of a query; without any, the twin is unchanged."""
    try:
        return parse_changes(setting, list(lift), loss_percent, rtt_ms, rate_mbps)
    except ValueError as error:
        raise HTTPException(422, f"{error}.") from None


def kernel_of(
    kernel: Annotated[
        str,
        Query(description=f"kernel of the lab: {', '.join(SERIES)}; by default the one closest to the receiver's"),
    ] = "",
) -> str:
    """Return the requested Linux of the lab; empty: the one that fits best."""
    if kernel not in ("", *SERIES):
        raise HTTPException(422, f"kernel must be one of {', '.join(SERIES)}.")
    return kernel


QueriedChange = Annotated[WhatIfQuery, Depends(asked_of)]
KernelName = Annotated[str, Depends(kernel_of)]


@router.post(PLACE, status_code=202)
async def start_twin(
    service: ServiceOf,
    request: Request,
    capture: Having,
    connection_id: ConnectionId,
    changes: QueriedChange,
    kernel: KernelName,
) -> TwinDocument:
    """Run a transfer like the connection in the lab's kernel, unchanged and with the change.

    409 if the requested kernel, or any kernel, of the lab is not built on the server, or too many twins wait. A queued
    or running twin continues.
    """
    state = await service.twins.start(capture.id, connection_id, changes, kernel)
    await service.audit.note(request, "twin.start", capture.id)
    return _document(service, state)


@router.get(PLACE)
async def show_twin(
    service: ServiceOf, capture: Having, connection_id: ConnectionId, changes: QueriedChange, kernel: KernelName
) -> TwinDocument:
    """Return the state and result of this change's twin; a run unlike the capture predicts nothing."""
    return _document(service, await service.twins.state(capture.id, connection_id, changes, kernel))


@router.delete(PLACE)
async def cancel_twin(
    service: ServiceOf,
    request: Request,
    capture: Having,
    connection_id: ConnectionId,
    changes: QueriedChange,
    kernel: KernelName,
) -> TwinDocument:
    """Cancel the runs, queued or running."""
    state = await service.twins.cancel(capture.id, connection_id, changes, kernel)
    await service.audit.note(request, "twin.cancel", capture.id)
    return _document(service, state)


@router.get(f"{PLACE}/figure", responses=AS_PICTURE)
async def show_twin_figure(
    service: ServiceOf,
    capture: Having,
    connection_id: ConnectionId,
    changes: QueriedChange,
    kernel: KernelName,
    form: FormAsked,
    theme: ThemeName = "light",
) -> Response:
    """Return bytes over time of the capture, its twin and the changed twin on the same axes, as plotly's JSON.

    404 if the twin was not run.
    """
    state = await service.twins.state(capture.id, connection_id, changes, kernel)
    if state.twin is None:
        raise HTTPException(404, "This twin was not run.")
    return await answer(json.dumps(_draw(state.twin, theme)), form)


def _draw(twin: dict[str, Any], theme: str) -> dict[str, Any]:
    named = [("captured", twin["captured"]), ("twin" if twin["is_twin"] else "run, no twin", twin["as_it_was"])]
    if twin["changed"] is not None:
        named.append((twin["change"], twin["changed"]))
    transfers = [Progress(name, each["curve"]["time_ns"], each["curve"]["sum_bytes"]) for name, each in named]
    return plain_progress(transfers, title="Bytes acknowledged over time", theme=theme)


def _document(service: ServiceOf, state: TwinState) -> TwinDocument:
    progress = None if state.progress is None else TwinProgress(**state.progress)
    return TwinDocument(
        status=state.status,
        progress=progress,
        failure=state.failure,
        twin=state.twin,
        kernels=list(service.twins.kernels()),
    )
