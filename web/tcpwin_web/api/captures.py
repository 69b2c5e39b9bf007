"""Captures: list, create, change, analyse, watch, delete."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from sqlalchemy.exc import SQLAlchemyError

from tcpwin_web.api.model import Verdict
from tcpwin_web.api.parts import Analysed, CaptureId, Limit, Offset, ServiceOf, Words, as_json, plain
from tcpwin_web.api.strict import Body
from tcpwin_web.captures import NotFoundError
from tcpwin_web.jobs import answers, both_ends
from tcpwin_web.results import layout, queries
from tcpwin_web.scales import MAX_SCALES, scales_of
from tcpwin_web.selecting import MOST_FILTER, MOST_MOMENT, selection_of
from tcpwin_web.slots import current_caller
from tcpwin_web.storage.models import Capture, File

router = APIRouter(tags=["captures"])

WATCH_SECONDS = 0.2
LOOKS_PER_SECOND = 100
"""Looks per second of all streams together, so that they do not slow down other users."""
WAITING = ("open", "queued", "running")
Tags = Annotated[list[Annotated[Words, Field(max_length=64), AfterValidator(plain)]], Field(max_length=20)]
Filter = Annotated[
    Words,
    Field(max_length=MOST_FILTER, description="only packets that match this libpcap filter", examples=["port 443"]),
]
Begin = Annotated[
    Words,
    Field(
        max_length=MOST_MOMENT,
        description="only packets from this time on: seconds since the first packet, a time of day, or a date, in UTC",
        examples=["12.5", "10:05:30", "2026-11-25T10:05:30Z"],
    ),
]
End = Annotated[
    Words, Field(max_length=MOST_MOMENT, description="only packets before this time, in the same formats as `from`")
]
Sort = Literal[
    "created",
    "-created",
    "name",
    "-name",
    "packets",
    "-packets",
    "connections",
    "-connections",
    "findings",
    "-findings",
    "problems",
    "-problems",
    "size",
    "-size",
]


class Selected(BaseModel):
    """The packets of a capture that are analysed."""

    filter: str | None
    start: str | None
    end: str | None


class CaptureEntry(BaseModel):
    """A capture as lists show it."""

    model_config = ConfigDict(
        from_attributes=True,
        json_schema_extra={
            "examples": [
                {
                    "id": "k3QWqxB0yJ8s2rTn",
                    "name": "slow-reader.pcap.gz",
                    "status": "done",
                    "failure": None,
                    "bundle_id": None,
                    "created_ns": 1_763_000_000_000_000_000,
                    "expires_ns": None,
                    "uploaded_bytes": 48213,
                    "packets": 4586,
                    "connections": 1,
                    "findings": 2,
                    "severity": "error",
                    "problems": 1,
                    "verdict": {
                        "limit": "receiver_application",
                        "second_limit": None,
                        "share": 0.89,
                        "cost_ns": 26_800_000_000,
                        "cost_low_ns": 26_800_000_000,
                        "cost_high_ns": 26_800_000_000,
                        "confidence": "certain",
                        "owner": "client_application",
                        "side": "client",
                        "direction": "b_to_a",
                        "fix": "Make the client's application read faster.",
                        "text": "Limited by a slow reader on the client (93 % of the time, certain).",
                        "is_problem": True,
                        "lost_ns": 26_800_000_000,
                        "named_ns": 26_800_000_000,
                        "also": None,
                    },
                    "summary": "6 MB in 30.1 s. Limited by a slow reader on the client (93 % of the time, certain).",
                    "tags": ["bundled"],
                    "is_bundled": True,
                    "host_pairs": 1,
                    "window_scales": None,
                    "selection": None,
                }
            ]
        },
    )

    id: str
    name: str
    status: Literal["open", "queued", "running", "done", "failed", "cancelled"]
    failure: str | None
    bundle_id: Annotated[str | None, Field(description="the same for captures uploaded in one bundle")]
    created_ns: int
    expires_ns: int | None
    uploaded_bytes: int
    packets: int | None
    connections: int | None
    findings: int | None
    severity: str | None
    host_pairs: Annotated[int | None, Field(description="rows available to searches, before any limit")]
    problems: Annotated[int | None, Field(description="connections with a problem")]
    verdict: Annotated[Verdict | None, Field(description="what limited the worst connection")]
    summary: str | None
    tags: list[str]
    is_bundled: Annotated[bool, Field(description="shown from the start: bundled, or named when the service started")]
    window_scales: Annotated[dict[str, int] | None, Field(description="window scale shifts given by hand, by address")]
    selection: Annotated[Selected | None, Field(description="which packets are analysed; null: all")]

    @classmethod
    def of(cls, capture: Capture) -> "CaptureEntry":
        """Describe a row."""
        names = set(cls.model_fields) - {"tags", "is_bundled"}
        values = {name: getattr(capture, name) for name in names}
        return cls(**values, tags=[tag.tag for tag in capture.tags], is_bundled=capture.origin is not None)


class FileEntry(BaseModel):
    """A stored file of a capture."""

    id: str
    name: str
    label: str
    kind: str
    sha256: str
    size_bytes: int
    packets_cut: int | None

    @classmethod
    def of(cls, file: File) -> "FileEntry":
        """Describe a row."""
        return cls(**{name: getattr(file, name) for name in cls.model_fields})


class CaptureWithFiles(CaptureEntry):
    """A capture with its files."""

    files: list[FileEntry]


class SkippedFile(BaseModel):
    """A file named when the service started that cannot be shown."""

    name: str
    reason: str


class CaptureList(BaseModel):
    """A page of captures."""

    captures: list[CaptureEntry]
    total: int
    skipped: Annotated[
        list[SkippedFile], Field(description="files named when the service started that cannot be shown")
    ]


class NewCapture(Body):
    """Name and settings of a new capture."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "the slow backup", "tags": ["backup"]}]})

    name: Annotated[Words, Field(min_length=1, max_length=255)]
    tags: Tags = []  # noqa: RUF012 - pydantic copies it
    window_scales: Annotated[
        list[Annotated[Words, Field(max_length=64)]],
        Field(max_length=MAX_SCALES, description="shifts of hosts whose SYNs the capture lacks, each as HOST=N"),
    ] = []  # noqa: RUF012 - as above
    filter: Filter | None = None
    start: Annotated[Begin | None, Field(alias="from")] = None
    end: Annotated[End | None, Field(alias="to")] = None


class CaptureChange(Body):
    """Changes to a capture; absent fields stay as they are."""

    name: Annotated[Words, Field(min_length=1, max_length=255)] | None = None
    tags: Tags | None = None


class Progress(BaseModel):
    """State of an analysis."""

    status: str
    bytes_read: int | None
    total_bytes: int
    failure: str | None


@router.get("/captures")
async def list_captures(
    service: ServiceOf,
    search: Annotated[Words, Query(max_length=200, description="a part of the name or of the summary")] = "",
    tag: Annotated[Words, Query(max_length=64)] = "",
    status: Literal["", "open", "queued", "running", "done", "failed", "cancelled"] = "",
    bundle: Annotated[
        str, Query(max_length=64, pattern=r"^[A-Za-z0-9_-]*$", description="captures of this bundle (bundle_id)")
    ] = "",
    sort: Sort = "-created",
    offset: Offset = 0,
    limit: Limit = 50,
) -> CaptureList:
    """List captures, newest first."""
    found, total = await service.captures.search(
        text=search, tag=tag, status=status, bundle=bundle, sort=sort, offset=offset, limit=limit
    )
    skipped = [SkippedFile(name=each.name, reason=each.reason) for each in service.skipped]
    return CaptureList(captures=[CaptureEntry.of(each) for each in found], total=total, skipped=skipped)


@router.post("/captures", status_code=201)
async def create_capture(service: ServiceOf, request: Request, new: NewCapture) -> CaptureEntry:
    """Create a capture; then add files and start its analysis."""
    service.rates.take("upload", request)
    capture = await service.captures.create(
        new.name,
        new.tags,
        window_scales=scales_of(new.window_scales),
        selection=selection_of(new.filter, new.start, new.end),
    )
    await service.audit.note(request, "capture.create", capture.id)
    return CaptureEntry.of(capture)


@router.get("/captures/{capture_id}")
async def show_capture(service: ServiceOf, capture_id: CaptureId) -> CaptureWithFiles:
    """Return one capture with its files."""
    capture = await service.captures.get(capture_id)
    entry = CaptureEntry.of(capture)
    return CaptureWithFiles(**entry.model_dump(), files=[FileEntry.of(file) for file in capture.files])


@router.patch("/captures/{capture_id}")
async def change_capture(
    service: ServiceOf, request: Request, capture_id: CaptureId, change: CaptureChange
) -> CaptureEntry:
    """Change the name or the tags of a capture."""
    capture = await service.captures.change(capture_id, name=change.name, tags=change.tags)
    await service.audit.note(request, "capture.change", capture_id)
    return CaptureEntry.of(capture)


@router.delete("/captures/{capture_id}", status_code=204)
async def delete_capture(service: ServiceOf, request: Request, capture_id: CaptureId) -> Response:
    """Delete a capture: its rows, files, results and share links."""
    service.twins.forget(capture_id)
    await service.captures.delete(capture_id)
    await service.audit.note(request, "capture.delete", capture_id)
    return Response(status_code=204)


@router.post("/captures/{capture_id}/analysis", status_code=202)
async def start_analysis(service: ServiceOf, request: Request, capture_id: CaptureId) -> CaptureEntry:
    """Start the analysis of a capture, or start it again: existing results stay until the new ones replace them.

    A bundle with several captures becomes several captures, each with the bundle's snapshots, linked by `bundle_id`.
    """
    service.rates.take("upload", request)
    started = await service.captures.start(capture_id)
    for each in started:
        await service.audit.note(request, "analysis.start", each.id)
    return CaptureEntry.of(started[0])


@router.delete("/captures/{capture_id}/analysis")
async def cancel_analysis(service: ServiceOf, request: Request, capture_id: CaptureId) -> CaptureEntry:
    """Cancel the analysis of a capture, queued or running; results of an earlier one stay."""
    capture = await service.captures.cancel(capture_id)
    await service.audit.note(request, "analysis.cancel", capture_id)
    return CaptureEntry.of(capture)


@router.get("/captures/{capture_id}/analysis")
async def show_analysis(service: ServiceOf, capture: Analysed) -> Response:
    """Return the result: facts and quality of the capture, summary, findings, hosts."""
    folder = service.data.results(capture.id)
    return as_json(await asyncio.to_thread(queries.read_document, folder, layout.CAPTURE))


async def _watching(service: ServiceOf) -> AsyncIterator[None]:
    with service.streams.hold():
        yield


@router.get("/captures/{capture_id}/progress", response_class=EventSourceResponse, dependencies=[Depends(_watching)])
async def watch_analysis(service: ServiceOf, capture_id: CaptureId) -> AsyncIterable[ServerSentEvent]:
    """Server-sent events: `progress` while the analysis is queued or running, then one `end`.

    If the service stops, the stream ends without `end`; browsers then reconnect.
    """
    before = None
    caller = current_caller()
    while not service.is_ending and not caller.gone.is_set():
        try:
            capture = await service.watch.look(capture_id)
        except SQLAlchemyError:
            # The database is busy or unavailable: the stream continues once it is back.
            await service.queue.wait(WATCH_SECONDS)
            continue
        except NotFoundError:
            yield ServerSentEvent(
                event="end", data=Progress(status="deleted", bytes_read=None, total_bytes=0, failure=None)
            )
            return
        now = Progress(
            status=capture.status,
            bytes_read=service.queue.bytes_read(capture_id) if capture.status == "running" else None,
            total_bytes=sum(file.size_bytes for file in capture.files if file.kind == "capture"),
            failure=capture.failure,
        )
        if capture.status not in WAITING:
            yield ServerSentEvent(event="end", data=now)
            return
        if now != before:
            yield ServerSentEvent(event="progress", data=now)
            before = now
        await service.queue.wait(max(WATCH_SECONDS, service.streams.taken / LOOKS_PER_SECOND))


@router.get("/tags")
async def list_tags(service: ServiceOf) -> dict[str, int]:
    """Return every tag with its number of captures."""
    return dict(await service.captures.tags())


@router.get("/compare")
async def compare(
    service: ServiceOf,
    old: Annotated[str, Query(max_length=64, pattern=r"^[A-Za-z0-9_-]+$")],
    new: Annotated[str, Query(max_length=64, pattern=r"^[A-Za-z0-9_-]+$")],
    tolerance: Annotated[
        float, Query(ge=0, le=1, description="relative difference up to which values count as the same")
    ] = 0.1,
) -> Response:
    """Compare two captures of the same workload, as `tcpwin compare` does."""
    file_sets = []
    for capture_id in (old, new):
        await service.captures.get(capture_id)
        file_sets.append(await service.queue.file_set(capture_id))
    return as_json(await service.queue.run(answers.compare_file_sets, *file_sets, tolerance))


@router.get("/pair")
async def pair(
    service: ServiceOf,
    a: Annotated[str, Query(max_length=64, pattern=r"^[A-Za-z0-9_-]+$")],
    b: Annotated[
        str,
        Query(
            max_length=64,
            pattern=r"^[A-Za-z0-9_-]*$",
            description="the second capture; empty if `a` contains both ends",
        ),
    ] = "",
) -> Response:
    """Return what happened to each packet between two captures of the same traffic, as `tcpwin pair --json` does."""
    file_sets = []
    for capture_id in (a, b) if b else (a,):
        await service.captures.get(capture_id)
        file_sets.append(await service.queue.file_set(capture_id))
    return as_json(await service.queue.run(both_ends.pair_file_sets, *file_sets))
