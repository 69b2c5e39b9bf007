"""The what-if page of a connection: the gain of lifting each limit, and the effect of any change."""

import asyncio
import shlex
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from fastapi.templating import Jinja2Templates

from tcpwin.lab import SERIES
from tcpwin.limits import LIMIT_NAMES
from tcpwin.paths import LIFTABLE
from tcpwin_web.api.parts import ConnectionId, Detailed, ServiceOf, Words
from tcpwin_web.api.whatif import parse_changes
from tcpwin_web.jobs.whatif import WhatIfQuery, describe_page
from tcpwin_web.pages.parts import show
from tcpwin_web.results import layout, queries

SETTINGS = {
    "rmem": "receiver.tcp_rmem",
    "wmem": "sender.tcp_wmem",
    "algorithm": "sender.tcp_congestion_control",
}
"""Form fields and their settings."""
ALGORITHMS = ("cubic", "reno", "bbr")
Field = Annotated[Words, Query(max_length=32)]
NUMBERS = {
    "loss_percent": ("the loss", 0.0, 99.99),
    "rtt_ms": ("the round trip", 1e-3, 60_000.0),
    "rate_mbps": ("the rate", 1e-3, 1e6),
}


def routes(templates: Jinja2Templates) -> APIRouter:
    """Create the route."""
    router = APIRouter()

    @router.get("/captures/{capture_id}/connections/{connection_id}/whatif")
    async def show_changes(
        request: Request,
        service: ServiceOf,
        capture: Detailed,
        connection_id: ConnectionId,
        rmem: Field = "",
        wmem: Field = "",
        algorithm: Field = "",
        loss_percent: Field = "",
        rtt_ms: Field = "",
        rate_mbps: Field = "",
        lift: Field = "",
        kernel: Field = "",
    ) -> Response:
        fields = {
            "rmem": rmem.strip(),
            "wmem": wmem.strip(),
            "algorithm": algorithm.strip(),
            "loss_percent": loss_percent.strip().replace(",", "."),
            "rtt_ms": rtt_ms.strip().replace(",", "."),
            "rate_mbps": rate_mbps.strip().replace(",", "."),
            "lift": lift if lift in LIFTABLE else "",
        }
        wrong = None
        try:
            numbers = {name: _number(name, fields[name]) for name in NUMBERS}
            settings = [f"{name}={fields[field]}" for field, name in SETTINGS.items() if fields[field]]
            changes = parse_changes(
                settings,
                [fields["lift"]] if fields["lift"] else [],
                numbers["loss_percent"],
                numbers["rtt_ms"],
                numbers["rate_mbps"],
            )
        except ValueError as error:
            # Shown next to the form, which keeps the input.
            changes, wrong = WhatIfQuery(), str(error)
        file_set = await service.queue.file_set(capture.id)
        content: dict[str, Any] = await service.queue.run(describe_page, file_set, connection_id, changes)
        # A run may answer what the model cannot, but needs a change and a connection with data.
        can_run = wrong is None and not content["is_no_change"] and content.get("path") is not None
        kernel = kernel if kernel in SERIES else ""
        state = await service.twins.state(capture.id, connection_id, changes, kernel) if can_run else None
        folder = service.data.results(capture.id) / layout.connection(connection_id)
        document = await asyncio.to_thread(queries.read_document, folder, layout.CONNECTION)
        return show(
            templates,
            request,
            "whatif.html",
            capture=capture,
            connection=document,
            content=content,
            wrong=wrong or content["refused"],
            fields=fields,
            algorithms=ALGORITHMS,
            liftable={limit: LIMIT_NAMES[limit] for limit in LIFTABLE},
            command=_command(capture.name, connection_id, fields),
            twin=state,
            kernel=kernel,
            kernels=_kernels(await asyncio.to_thread(service.twins.kernels), content.get("kernel")),
            twin_command=f"{_command(capture.name, connection_id, fields)} --twin runs",
            query=_encoded(_query(fields)),
            queries={each: _encoded({**_query(fields), "kernel": each}) for each in ("", *SERIES)},
            queries_of_page={each: _encoded({**fields, "kernel": each}) for each in ("", *SERIES)},
        )

    return router


def _kernels(built: tuple[str, ...], fitting: str | None) -> list[tuple[str, str]]:
    """Return each built kernel with its query value, which is empty for the default: the one that fits."""
    return sorted(((each, "" if each == fitting else each) for each in built), key=lambda each: bool(each[1]))


def _encoded(query: dict[str, Any]) -> str:
    return urlencode({name: value for name, value in query.items() if value}, doseq=True)


def _number(name: str, text: str) -> float | None:
    """Parse a field; raise ValueError if it is not a number within its range."""
    if not text:
        return None
    words, least, most = NUMBERS[name]
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{words} must be a number, not {text!r}") from None
    if not least <= value <= most:
        raise ValueError(f"{words} must be from {least:g} to {most:,.10g}, not {text}")
    return value


def _query(fields: dict[str, str]) -> dict[str, Any]:
    """Return the API's query for the same changes."""
    return {
        "setting": [f"{name}={fields[field]}" for field, name in SETTINGS.items() if fields[field]],
        **{name: fields[name] for name in (*NUMBERS, "lift")},
    }


def _command(capture: str, connection: int, fields: dict[str, str]) -> str:
    """Return the command line for the same changes."""
    words = ["tcpwin", "whatif", capture, "--connection", str(connection)]
    for field, name in SETTINGS.items():
        words += ["--set", f"{name}={fields[field]}"] if fields[field] else []
    units = {"loss_percent": ("--loss", "%"), "rtt_ms": ("--rtt", "ms"), "rate_mbps": ("--rate", "Mbit")}
    for field, (option, unit) in units.items():
        words += [option, f"{fields[field]}{unit}"] if fields[field] else []
    words += ["--lift", fields["lift"]] if fields["lift"] else []
    return shlex.join([*words, "--each"])
