"""The pages of captures: the list, the upload, one capture."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi.responses import RedirectResponse, Response
from fastapi.templating import Jinja2Templates
from markupsafe import Markup
from starlette.datastructures import UploadFile

from tcpwin.limits import LIMIT_NAMES
from tcpwin.model import LimitName
from tcpwin_web.api.captures import Sort
from tcpwin_web.api.connections import verdict_conditions
from tcpwin_web.api.parts import Analysed, CaptureId, Offset, ServiceOf, Words
from tcpwin_web.captures import OVER
from tcpwin_web.jobs.detail import sketch_connections
from tcpwin_web.pages.cache import PageCache
from tcpwin_web.pages.parts import require_own_form, settings_of, show
from tcpwin_web.results import layout, queries
from tcpwin_web.results.columns import OF_VERDICTS
from tcpwin_web.scales import scales_of
from tcpwin_web.selecting import selection_of
from tcpwin_web.service import Service
from tcpwin_web.storage.models import Capture
from tcpwin_web.uploads.stream import Arriving, UploadError

PAGE_CAPTURES = 50
PAGE_CONNECTIONS = 100
MOST_SKETCHES = PAGE_CONNECTIONS + 1
FORM_PART_BYTES = 1 << 20
LISTED = (
    *("id", "a_address", "a_port", "b_address", "b_port", "start_ns", "duration_ns", "path_rtt_ns", "close"),
    *OF_VERDICTS,
    *("findings", "goodput_bps", "retransmissions", "a_to_b.acked_bytes", "b_to_a.acked_bytes"),
    *("a_to_b.payload_bytes", "b_to_a.payload_bytes", "a_to_b.flight_max_bytes", "b_to_a.flight_max_bytes"),
)
FILTERS = {
    "": ("all connections", ()),
    "problem": ("with a problem", ("verdict.is_problem=true",)),
    "found": ("with findings", ("findings>0",)),
    "stalled": ("with stalls", ("stall_count>0",)),
    "reset": ("reset", ("close=reset",)),
}
"""Choices of connections by key: label and conditions."""
Only = Literal["", "problem", "found", "stalled", "reset"]
Seconds = Annotated[str, Query(pattern=r"^([0-9]{1,10}([.][0-9]{1,9})?)?$")]


@dataclass(frozen=True)
class ListQuery:
    """Query of a capture's connections: the form's fields, empty by default."""

    search: Annotated[Words, Query(max_length=100)] = ""
    port: Annotated[str, Query(pattern=r"^[0-9]{0,5}$")] = ""
    only: Only = ""
    limited_by: Annotated[Literal[""] | LimitName, Query()] = ""
    begin: Annotated[Seconds, Query(alias="from")] = ""
    until: Annotated[Seconds, Query(alias="to")] = ""
    sort: Annotated[str, Query(max_length=100)] = queries.WORST
    offset: Offset = 0

    @property
    def fields(self) -> dict[str, Any]:
        """The fields by their names in the URL."""
        named = {"search": self.search, "port": self.port, "only": self.only, "limited_by": self.limited_by}
        return {**named, "from": self.begin, "to": self.until, "sort": self.sort, "offset": self.offset}

    @property
    def is_filtered(self) -> bool:
        """Whether some connections may be left out."""
        return any(value for name, value in self.fields.items() if name not in ("sort", "offset"))

    def conditions(self, first_ns: int) -> dict[str, Any]:
        """Return the arguments of `queries.list_connections`; times count from the capture's first packet."""
        begin, until = (int(Decimal(each) * 10**9) + first_ns if each else None for each in (self.begin, self.until))
        return {
            "search": self.search,
            "port": int(self.port) if self.port else None,
            "span": (begin, until),
            "where": (*FILTERS[self.only][1], *verdict_conditions(self.limited_by, None)),
            "sort": self.sort,
            "offset": self.offset,
        }


@dataclass(frozen=True)
class Entry:
    """A row of the list: a capture, or a bundle with several.

    Attributes:
        shown: the capture whose facts the row shows: of a bundle, that with the largest cost.
        name: name of the bundle; empty for a single capture.
        parts: names within the bundle, and their captures.
    """

    shown: Capture
    name: str = ""
    parts: tuple[tuple[str, Capture], ...] = ()


def _entries(captures: Sequence[Capture]) -> list[Entry]:
    """Return the rows of a list; neighbours from one bundle share a row."""
    entries = []
    for _, group in groupby(captures, lambda each: each.bundle_id or each.id):
        found = list(group)
        named = [each.name.partition(": ") for each in found]
        if len(found) < 2 or len({name for name, _, part in named if part}) != 1:
            entries += [Entry(each) for each in found]
            continue
        parts = sorted(zip((part for *_, part in named), found, strict=True), key=lambda each: each[0])
        worst = max(found, key=lambda each: (each.status != "done", (each.verdict or {}).get("named_ns", 0)))
        entries.append(Entry(worst, named[0][0], tuple(parts)))
    return entries


def routes(templates: Jinja2Templates) -> APIRouter:
    """Create the routes."""
    router, cache = APIRouter(), PageCache()

    @router.get("/")
    async def show_captures(
        request: Request,
        service: ServiceOf,
        search: Annotated[Words, Query(max_length=200)] = "",
        tag: Annotated[Words, Query(max_length=64)] = "",
        sort: Sort = "-created",
        offset: Offset = 0,
    ) -> Response:
        found, total = await service.captures.search(
            text=search, tag=tag, sort=sort, offset=offset, limit=PAGE_CAPTURES
        )
        return show(
            templates,
            request,
            "captures.html",
            captures=_entries(found),
            total=total,
            tags=await service.captures.tags(),
            query={"search": search, "tag": tag, "sort": sort, "offset": offset},
            size=PAGE_CAPTURES,
            skipped=service.skipped,
        )

    @router.get("/upload")
    def show_upload(request: Request, service: ServiceOf) -> Response:
        return show(templates, request, "upload.html", settings=service.settings)

    @router.post("/upload")
    async def upload(request: Request, service: ServiceOf) -> Response:
        service.rates.take("upload", request)
        async with service.uploads():
            return await _take_form(request, service)

    @router.get("/captures/{capture_id}")
    async def show_capture(
        request: Request, service: ServiceOf, capture_id: CaptureId, query: Annotated[ListQuery, Depends()]
    ) -> Response:
        capture = await service.captures.get(capture_id)
        others = await service.captures.of_bundle(capture)
        if not capture.has_results:
            return show(templates, request, "waiting.html", capture=capture, others=others)
        folder = service.data.results(capture_id)
        document, mark = await asyncio.to_thread(_read_marked, folder)
        drawn, sketches, view = await asyncio.gather(
            asyncio.to_thread(queries.read_figures, folder),
            asyncio.to_thread(queries.read_sketches, folder),
            asyncio.to_thread(queries.read_document, folder, layout.VIEW),
        )

        async def draw_table() -> Markup:
            page = await asyncio.to_thread(
                queries.list_connections,
                folder,
                **query.conditions(document["capture"]["first_time_ns"] or 0),
                limit=PAGE_CONNECTIONS,
                columns=LISTED,
            )
            text = templates.get_template("rows.html").render(
                capture_id=capture_id,
                rows=queries.describe_rows(page.rows),
                total=page.total,
                query=query.fields,
                is_filtered=query.is_filtered,
                size=PAGE_CONNECTIONS,
                sketches=sketches,
            )
            # The template has escaped the capture's texts.
            return Markup(text)

        # Rendering the table takes half of a page's time.
        table = await cache.get((capture_id, mark, len(sketches), *query.fields.items()), draw_table)
        return show(
            templates,
            request,
            "capture.html",
            capture=capture,
            others=others,
            ends=await asyncio.to_thread(_describe_ends, service, document, others),
            document=document,
            view=view,
            settings=_fix_settings(document, view),
            table=table,
            query=query.fields,
            filters=[(key, words) for key, (words, _) in FILTERS.items()],
            limits=LIMIT_NAMES,
            drawn=drawn,
            sketches=sketches,
            notes=await service.notes.list(capture_id),
        )

    @router.get("/bundles/{bundle_id}")
    async def show_bundle(service: ServiceOf, bundle_id: CaptureId) -> Response:
        """Lead to the bundle's capture taken at the sender, or to one that is not analysed yet."""
        found, _ = await service.captures.search(bundle=bundle_id, sort="name")
        if not found:
            raise HTTPException(404, "No bundle has this id.")
        waiting = [each for each in found if each.status not in OVER]
        shown = waiting[0] if waiting else await asyncio.to_thread(_of_sender, service, found)
        return RedirectResponse(f"/captures/{shown.id}", 303)

    @router.get("/captures/{capture_id}/sketches")
    async def show_sketches(
        request: Request,
        service: ServiceOf,
        capture: Analysed,
        connection: Annotated[list[Annotated[int, Query(ge=0)]], Query(max_length=MOST_SKETCHES)],
    ) -> Response:
        """Return sketches of connections beyond the page's first rows, as a fragment of HTML."""
        known = await asyncio.to_thread(queries.read_sketches, service.data.results(capture.id))
        lacking = sorted({id for id in connection if str(id) not in known})
        found = {id: known[str(id)] for id in connection if str(id) in known}
        if lacking:
            file_set = await service.queue.file_set(capture.id)
            found.update(await service.queue.run(sketch_connections, file_set, lacking))
        return show(templates, request, "sketches.html", found=found)

    return router


def _of_sender(service: Service, captures: Sequence[Capture]) -> Capture:
    """Return the capture taken at the sender; if none was, the first."""
    known = (each for each in captures if each.has_results)
    at_sender = (each for each in known if _read_analysis(service, each).get("taken_at") == "sender")
    return next(at_sender, captures[0])


def _describe_ends(service: Service, document: dict[str, Any], others: Sequence[Capture]) -> dict[str, Any]:
    """Return by capture which end of its worst connection it was taken at, and whether its verdict is the same."""
    ends = {}
    for other in others:
        if other.has_results:
            there = _read_analysis(service, other)
            is_same = _named_limit(there["verdict"]) == _named_limit(document["verdict"])
            ends[other.id] = {"taken_at": there.get("taken_at"), "is_same": is_same}
    return ends


def _named_limit(verdict: dict[str, Any] | None) -> tuple[object, ...] | None:
    return None if verdict is None else tuple(verdict[name] for name in ("limit", "also", "is_problem", "direction"))


def _read_analysis(service: Service, capture: Capture) -> dict[str, Any]:
    """Return a capture's document; one of an older version may lack keys until it is analysed again."""
    document: dict[str, Any] = queries.read_document(service.data.results(capture.id), layout.CAPTURE)
    return document


def _fix_settings(document: dict[str, Any], view: dict[str, Any]) -> list[str]:
    """Return the commands of the fix that the answer shows."""
    if not view["glance"]:
        return []
    found = (each for group in view["groups"] for each in group["worst"])
    return settings_of(document["verdict"], (each for each in found if each["connection"] == view["glance"]["id"]))


def _read_marked(folder: Path) -> tuple[Any, tuple[int, int]]:
    """Return a capture's document and the identity of its file, which changes with each analysis."""
    status = (folder / layout.CAPTURE).stat()
    return queries.read_document(folder, layout.CAPTURE), (status.st_ino, status.st_mtime_ns)


async def _take_form(request: Request, service: Service) -> Response:
    """Receive an upload from a browser without scripts: a form with files and pasted text."""
    async with request.form(max_files=service.settings.max_files, max_part_size=FORM_PART_BYTES) as form:
        require_own_form(request, form.get("csrf"))
        files = [each for each in form.getlist("files") if isinstance(each, UploadFile) and each.filename]
        pasted = form.get("pasted")
        if not files:
            raise UploadError(422, "Choose a capture or a bundle.")
        scales = scales_of(_text(form.get("window_scales")).split())
        selection = selection_of(*(_text(form.get(name)) for name in ("filter", "from", "to")))
        capture = await service.captures.create(
            files[0].filename or "capture", window_scales=scales, selection=selection
        )
        try:
            for each in files:
                await _store(service, capture.id, each.filename or "unnamed", _chunks(each))
            if isinstance(pasted, str) and pasted.strip():
                await _store(service, capture.id, "pasted.txt", _once(pasted.encode()), "snapshot")
            started = await service.captures.start(capture.id)
        except BaseException:
            await asyncio.shield(service.captures.give_up(capture.id))
            raise
    for made in started:
        await service.audit.note(request, "capture.upload", made.id)
    bundle = started[0].bundle_id
    return RedirectResponse(f"/bundles/{bundle}" if bundle else f"/captures/{capture.id}", 303)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


async def _store(service: Service, capture_id: str, name: str, chunks: Any, kind: Any = None) -> None:
    file = Arriving(max_bytes=service.settings.max_upload_bytes)
    storing = asyncio.create_task(service.captures.add(capture_id, file, name, kind))
    storing.add_done_callback(lambda _: file.abandon())
    await file.feed(chunks)
    await storing


async def _chunks(file: UploadFile) -> Any:
    while chunk := await file.read(1 << 18):
        yield chunk


async def _once(data: bytes) -> Any:
    yield data
