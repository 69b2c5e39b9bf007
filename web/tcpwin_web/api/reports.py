"""Reports to download, for captures and for share links."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from threading import Event
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Query, Request, Response

from tcpwin.errors import OutputError
from tcpwin.render.report import CONNECTIONS_SHOWN, Note, find_browser, print_page
from tcpwin_web.api.parts import Analysed, ServiceOf, attachment
from tcpwin_web.api.shares import Secret, open_link
from tcpwin_web.jobs import JobError
from tcpwin_web.jobs.answers import ReportForm, render_report
from tcpwin_web.jobs.work import FileSet
from tcpwin_web.notes import reported
from tcpwin_web.service import ANSWER_NICENESS, Service
from tcpwin_web.slots import current_caller, waiting

router = APIRouter(tags=["reports"])

T = TypeVar("T")

MEDIA = {
    "text": "text/plain; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "pdf": "application/pdf",
    "md": "text/markdown; charset=utf-8",
    "json": "application/json",
}
Format = Annotated[ReportForm, Query(description="text as `tcpwin analyze`, the others as `tcpwin report` writes them")]
Limit = Annotated[int, Query(ge=0, le=1000, description="maximum number of connections in full")]


@router.get("/captures/{capture_id}/report", response_class=Response)
async def show_report(
    service: ServiceOf, capture: Analysed, format: Format = "text", limit: Limit = CONNECTIONS_SHOWN
) -> Response:
    """Return the report as text, or as a self-contained file."""
    file_set = await service.queue.file_set(capture.id)
    notes = reported(await service.notes.list(capture.id))
    return await _render(service, file_set, capture.name, format, limit, notes=notes)


@router.get("/shared/{secret}/report", response_class=Response)
async def show_shared_report(
    service: ServiceOf, request: Request, secret: Secret, format: Literal["html", "pdf", "md"] = "html"
) -> Response:
    """Return the report of a share link, with the addresses it shows. Needs no token."""
    opened = await open_link(service, request, secret)
    service.rates.take("guest_report", request)
    service.audit.seen(request, "report.read", opened.capture.id, link=opened.link_id)
    name = opened.capture.name if opened.address_key is None else "capture"

    async def render() -> Response:
        file_set = await service.queue.file_set(opened.capture.id)
        return await _render(service, file_set, name, format, CONNECTIONS_SHOWN, opened.address_key)

    # Many people may open the same link at once: render once.
    made = await service.queue.once(opened.capture.id, f"report-{opened.link_id}-{format}", render)
    return Response(
        made.body, media_type=MEDIA[format], headers={"Content-Disposition": made.headers["content-disposition"]}
    )


async def _render(
    service: Service,
    file_set: FileSet,
    name: str,
    form: ReportForm,
    limit: int,
    address_key: str | None = None,
    notes: Sequence[Note] = (),
) -> Response:
    if form == "pdf":
        _in_words(find_browser)
    report: str | bytes = await service.queue.run(render_report, file_set, form, limit, address_key, notes)
    if form == "pdf":
        assert isinstance(report, str)
        report = await _print(service, report)
    # Sent as a download, never as a page of the service: its scripts are not the service's.
    headers = {} if form == "text" else {"Content-Disposition": attachment(name, form)}
    return Response(report, media_type=MEDIA[form], headers=headers)


async def _print(service: Service, page: str) -> bytes:
    """Print in a printing thread; end the browser if the caller leaves."""
    unwanted = Event()
    loop = asyncio.get_running_loop()
    async with waiting(), service.prints.take(service.settings.print_seconds):
        service.printing.add(unwanted)
        printing = loop.run_in_executor(
            service.print_threads,
            partial(_in_words, print_page, page, service.settings.print_seconds, unwanted, niceness=ANSWER_NICENESS),
        )
        try:
            return await current_caller().await_unless_gone(asyncio.shield(printing))
        finally:
            unwanted.set()
            # Its slot is free once the browser has ended.
            await asyncio.gather(printing, return_exceptions=True)
            service.printing.discard(unwanted)


def _in_words(fn: Callable[..., T], *args: Any, **options: Any) -> T:
    try:
        return fn(*args, **options)
    except OutputError as error:
        raise JobError(str(error)) from None
