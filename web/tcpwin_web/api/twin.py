"""A change tried on a twin: a run like the connection in the lab's kernel, and the same with the change."""

import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from pydantic import BaseModel, Field

from tcpwin.figures import Progress, plain_progress
from tcpwin.lab import SERIES
from tcpwin_web.api.figures import AS_PICTURE, FormAsked, ThemeName, answer
from tcpwin_web.api.parts import ConnectionId, Having, ServiceOf
from tcpwin_web.api.whatif import Lift, Loss, Rate, RoundTrip, Settings, read_asked
from tcpwin_web.jobs.whatif import Asked
from tcpwin_web.twins import Status, TwinState

router = APIRouter(tags=["what if"])
PLACE = "/captures/{capture_id}/connections/{connection_id}/twin"


class TwinProgress(BaseModel):
    """How far the runs are."""

    run: Annotated[int, Field(description="1: as it was; 2: with the change")]
    runs: int
    elapsed_ns: Annotated[int, Field(description="of this run, by its own clock")]
    share: Annotated[float, Field(description="of all, from 0 to 1")]


class TwinDocument(BaseModel):
    """Where a twin is, and what it came to."""

    status: Status
    progress: TwinProgress | None
    failure: Annotated[str | None, Field(description="why there is no answer")]
    twin: Annotated[
        dict[str, Any] | None,
        Field(
            description="the `twin` of `tcpwin whatif --twin --json`, and `rows`: what the "
            "capture, its twin and the changed twin did, side by side"
        ),
    ]
    kernels: Annotated[list[str], Field(description="of the lab that are built on this server; none: nothing can run")]


def asked_of(
    setting: Settings = [],  # noqa: B006 - FastAPI copies it
    lift: Lift = [],  # noqa: B006 - as above
    loss_percent: Loss = None,
    rtt_ms: RoundTrip = None,
    rate_mbps: Rate = None,
) -> Asked:
    """The changes of a query; without any, the twin as the connection was."""
    try:
        return read_asked(setting, list(lift), loss_percent, rtt_ms, rate_mbps)
    except ValueError as error:
        raise HTTPException(422, f"{error}.") from None


def kernel_of(
    kernel: Annotated[
        str,
        Query(description=f"of the lab: {', '.join(SERIES)}; without it what counts receive memory as the receiver's"),
    ] = "",
) -> str:
    """Which Linux of the lab was asked for; empty: the one that fits."""
    if kernel not in ("", *SERIES):
        raise HTTPException(422, f"kernel is one of {', '.join(SERIES)}.")
    return kernel


AskedChange = Annotated[Asked, Depends(asked_of)]
AskedKernel = Annotated[str, Depends(kernel_of)]


@router.post(PLACE, status_code=202)
async def start_twin(
    service: ServiceOf,
    request: Request,
    capture: Having,
    connection_id: ConnectionId,
    asked: AskedChange,
    kernel: AskedKernel,
) -> TwinDocument:
    """Run a transfer like the connection in the lab's kernel, and the same with the change.

    409 where no kernel of the lab, or not the one asked for, is built on the server, or too many wait. What waits or
    runs already goes on.
    """
    state = await service.twins.start(capture.id, connection_id, asked, kernel)
    await service.audit.note(request, "twin.start", capture.id)
    return _document(service, state)


@router.get(PLACE)
async def show_twin(
    service: ServiceOf, capture: Having, connection_id: ConnectionId, asked: AskedChange, kernel: AskedKernel
) -> TwinDocument:
    """Where the twin of this change is, and what it came to. A run that is no twin says so, and predicts nothing."""
    return _document(service, await service.twins.state(capture.id, connection_id, asked, kernel))


@router.delete(PLACE)
async def cancel_twin(
    service: ServiceOf,
    request: Request,
    capture: Having,
    connection_id: ConnectionId,
    asked: AskedChange,
    kernel: AskedKernel,
) -> TwinDocument:
    """End the runs, whether they wait or are under way."""
    state = await service.twins.cancel(capture.id, connection_id, asked, kernel)
    await service.audit.note(request, "twin.cancel", capture.id)
    return _document(service, state)


@router.get(f"{PLACE}/figure", responses=AS_PICTURE)
async def show_twin_figure(
    service: ServiceOf,
    capture: Having,
    connection_id: ConnectionId,
    asked: AskedChange,
    kernel: AskedKernel,
    form: FormAsked,
    theme: ThemeName = "light",
) -> Response:
    """The bytes over time of the capture, its twin and the changed twin on the same axes, as plotly draws them.

    404 where the twin was not run.
    """
    state = await service.twins.state(capture.id, connection_id, asked, kernel)
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
