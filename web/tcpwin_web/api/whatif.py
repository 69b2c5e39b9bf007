"""Effect of a change on a connection: a setting, a lifted limit, another path."""

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query
from fastapi.responses import Response

from tcpwin.model import LimitName
from tcpwin_web.api.parts import ConnectionId, Having, ServiceOf, Words, as_json
from tcpwin_web.jobs.whatif import WhatIfQuery, predict

router = APIRouter(tags=["what if"])

MOST = 8
"""Maximum number of changes of one kind."""
OneSetting = Annotated[Words, Query(max_length=80)]
Settings = Annotated[
    list[OneSetting],
    Query(
        max_length=MOST,
        description="an end's setting and value: receiver.tcp_rmem=32M; repeatable",
        examples=[["receiver.tcp_rmem=32M", "sender.tcp_wmem=32M"]],
    ),
]
Lift = Annotated[list[LimitName], Query(max_length=MOST, description="a limit to lift; repeatable")]
Loss = Annotated[float | None, Query(ge=0, lt=100, allow_inf_nan=False, description="random loss on the path, percent")]
RoundTrip = Annotated[
    float | None, Query(gt=0, le=60_000, allow_inf_nan=False, description="round trip of the path, ms")
]
Rate = Annotated[
    float | None,
    Query(gt=0, le=1e6, allow_inf_nan=False, description="rate of the path, Mbit/s, including headers"),
]


def parse_changes(
    settings: list[str], lift: list[str], loss_percent: float | None, rtt_ms: float | None, rate_mbps: float | None
) -> WhatIfQuery:
    """Return the changes of a query.

    Raises:
        ValueError: a setting has no value.
    """
    pairs = []
    for each in settings:
        name, equals, value = each.partition("=")
        if not equals or not value.strip():
            raise ValueError(f"{each!r} is not a setting with a value, such as receiver.tcp_rmem=32M")
        pairs.append((name.strip(), value.strip()))
    return WhatIfQuery(
        tuple(pairs),
        tuple(lift),
        None if loss_percent is None else loss_percent / 100,
        None if rtt_ms is None else rtt_ms * 1e6,
        None if rate_mbps is None else rate_mbps * 1e6,
    )


@router.get("/captures/{capture_id}/connections/{connection_id}/whatif")
async def show_whatif(
    service: ServiceOf,
    capture: Having,
    connection_id: ConnectionId,
    setting: Settings = [],  # noqa: B006 - FastAPI copies it
    lift: Lift = [],  # noqa: B006 - as above
    loss_percent: Loss = None,
    rtt_ms: RoundTrip = None,
    rate_mbps: Rate = None,
) -> Response:
    """Predict duration and throughput after a change from the verdict's cost model, with intervals.

    Also lifts every limit alone, largest gain first: the document of `tcpwin whatif --each --json`.
    422 for an invalid change, or if the capture does not allow a prediction.
    """
    try:
        query = parse_changes(setting, list(lift), loss_percent, rtt_ms, rate_mbps)
    except ValueError as error:
        raise HTTPException(422, f"{error}.") from None
    file_set = await service.queue.file_set(capture.id)
    document: dict[str, Any] = await service.queue.run(predict, file_set, connection_id, query)
    if "refused" in document:
        raise HTTPException(422, f"{document['refused'].rstrip('.')}.")
    return as_json(document)
