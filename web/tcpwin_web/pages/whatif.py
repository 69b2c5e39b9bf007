"""A connection under changes as a page: what each limit gains where it is lifted, and what any change would do."""

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
from tcpwin_web.api.whatif import read_asked
from tcpwin_web.jobs.whatif import WhatIfQuery, describe_page
from tcpwin_web.pages.parts import show
from tcpwin_web.results import layout, queries

SETTINGS = {
    "rmem": "receiver.tcp_rmem",
    "wmem": "sender.tcp_wmem",
    "algorithm": "sender.tcp_congestion_control",
}
"""Fields of the form, and what they set."""
ALGORITHMS = ("cubic", "reno", "bbr")
Field = Annotated[Words, Query(max_length=32)]
NUMBERS = {
    "loss_percent": ("the loss", 0.0, 99.99),
    "rtt_ms": ("the round trip", 1e-3, 60_000.0),
    "rate_mbps": ("the rate", 1e-3, 1e6),
}


def routes(templates: Jinja2Templates) -> APIRouter:
    """Make the route."""
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
            asked = read_asked(
                settings,
                [fields["lift"]] if fields["lift"] else [],
                numbers["loss_percent"],
                numbers["rtt_ms"],
                numbers["rate_mbps"],
            )
        except ValueError as error:
            # Said beside the form, which keeps what was typed.
            asked, wrong = WhatIfQuery(), str(error)
        file_set = await service.queue.file_set(capture.id)
        told: dict[str, Any] = await service.queue.run(describe_page, file_set, connection_id, asked)
        # What the model cannot say a run may; what is no change, or of a connection without data, nobody tries.
        can_run = wrong is None and not told["is_no_change"] and told.get("path") is not None
        kernel = kernel if kernel in SERIES else ""
        state = await service.twins.state(capture.id, connection_id, asked, kernel) if can_run else None
        folder = service.data.results(capture.id) / layout.connection(connection_id)
        document = await asyncio.to_thread(queries.read_document, folder, layout.CONNECTION)
        return show(
            templates,
            request,
            "whatif.html",
            capture=capture,
            connection=document,
            told=told,
            wrong=wrong or told["refused"],
            asked=fields,
            algorithms=ALGORITHMS,
            liftable={limit: LIMIT_NAMES[limit] for limit in LIFTABLE},
            command=_command(capture.name, connection_id, fields),
            twin=state,
            kernel=kernel,
            kernels=_kernels(await asyncio.to_thread(service.twins.kernels), told.get("kernel")),
            twin_command=f"{_command(capture.name, connection_id, fields)} --twin runs",
            query=_encoded(_query(fields)),
            queries={each: _encoded({**_query(fields), "kernel": each}) for each in ("", *SERIES)},
            queries_of_page={each: _encoded({**fields, "kernel": each}) for each in ("", *SERIES)},
        )

    return router


def _kernels(built: tuple[str, ...], fitting: str | None) -> list[tuple[str, str]]:
    """Each kernel that is built, and how it is asked for: the one that fits is what runs where none is."""
    return sorted(((each, "" if each == fitting else each) for each in built), key=lambda each: bool(each[1]))


def _encoded(query: dict[str, Any]) -> str:
    return urlencode({name: value for name, value in query.items() if value}, doseq=True)


def _number(name: str, text: str) -> float | None:
    """What was typed; ValueError where it is no number, or none that may be."""
    if not text:
        return None
    words, least, most = NUMBERS[name]
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{words} is a number, not {text!r}") from None
    if not least <= value <= most:
        raise ValueError(f"{words} is from {least:g} to {most:,.10g}, not {text}")
    return value


def _query(fields: dict[str, str]) -> dict[str, Any]:
    """The same question to the API."""
    return {
        "setting": [f"{name}={fields[field]}" for field, name in SETTINGS.items() if fields[field]],
        **{name: fields[name] for name in (*NUMBERS, "lift")},
    }


def _command(capture: str, connection: int, fields: dict[str, str]) -> str:
    """The same question on the command line."""
    words = ["tcpwin", "whatif", capture, "--connection", str(connection)]
    for field, name in SETTINGS.items():
        words += ["--set", f"{name}={fields[field]}"] if fields[field] else []
    units = {"loss_percent": ("--loss", "%"), "rtt_ms": ("--rtt", "ms"), "rate_mbps": ("--rate", "Mbit")}
    for field, (option, unit) in units.items():
        words += [option, f"{fields[field]}{unit}"] if fields[field] else []
    words += ["--lift", fields["lift"]] if fields["lift"] else []
    return shlex.join([*words, "--each"])
