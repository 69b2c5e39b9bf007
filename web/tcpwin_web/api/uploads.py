"""Uploads: a file in one request, or the files of a capture one after another."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel
from starlette.requests import ClientDisconnect

from tcpwin_web import metrics
from tcpwin_web.api.captures import Begin, CaptureEntry, End, FileEntry, Filter
from tcpwin_web.api.parts import CaptureId, ServiceOf, Words
from tcpwin_web.scales import MAX_SCALES, scales_of
from tcpwin_web.selecting import selection_of
from tcpwin_web.service import Service
from tcpwin_web.storage.models import File
from tcpwin_web.uploads.stream import Arriving, UploadError

router = APIRouter(tags=["uploads"])

Name = Annotated[Words, Query(max_length=1024, description="file name to show", examples=["slow.pcap"])]
Kind = Annotated[
    Literal["capture", "snapshot", "bundle"] | None,
    Query(description="kind of file; detected from its content by default"),
]
BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


class FileList(BaseModel):
    """Captures made from an upload: several for a bundle."""

    files: list[FileEntry]
    received_bytes: int


@router.post("/uploads", status_code=202, openapi_extra=BODY)
async def upload(
    service: ServiceOf,
    request: Request,
    name: Name,
    kind: Kind = None,
    tag: Annotated[list[Annotated[Words, Query(max_length=64)]] | None, Query(max_length=20)] = None,
    window_scale: Annotated[
        list[Annotated[Words, Query(max_length=64)]] | None,
        Query(
            max_length=MAX_SCALES,
            description="window scale shift of a host whose SYN is missing, as HOST=N",
            examples=[["10.0.0.1=7"]],
        ),
    ] = None,
    filter: Annotated[Filter | None, Query()] = None,
    start: Annotated[Begin | None, Query(alias="from")] = None,
    end: Annotated[End | None, Query(alias="to")] = None,
) -> CaptureEntry:
    """Upload one capture or bundle as the request body, and start its analysis.

    A bundle with several captures becomes several captures, linked by `bundle_id`.
    """
    service.rates.take("upload", request)
    capture = await service.captures.create(
        name,
        tag or (),
        window_scales=scales_of(window_scale or ()),
        selection=selection_of(filter, start, end),
    )
    try:
        await take(service, request, capture.id, name, kind)
        started = await service.captures.start(capture.id)
    except BaseException:
        await asyncio.shield(service.captures.give_up(capture.id))
        raise
    for each in started:
        await service.audit.note(request, "capture.upload", each.id)
    return CaptureEntry.of(started[0])


@router.put("/captures/{capture_id}/files", status_code=201, openapi_extra=BODY)
async def add_file(
    service: ServiceOf, request: Request, capture_id: CaptureId, name: Name, kind: Kind = None
) -> FileList:
    """Add a file to an open capture: a capture, host snapshots, or a bundle, as the request body."""
    service.rates.take("upload", request)
    files, received_bytes = await take(service, request, capture_id, name, kind)
    await service.audit.note(request, "file.upload", capture_id)
    return FileList(files=[FileEntry.of(file) for file in files], received_bytes=received_bytes)


async def take(
    service: Service, request: Request, capture_id: str, name: str, kind: Kind
) -> tuple[Sequence[File], int]:
    """Store a request body as a file of a capture while it arrives."""
    async with service.uploads():
        return await _take(service, request, capture_id, name, kind)


async def _take(
    service: Service, request: Request, capture_id: str, name: str, kind: Kind
) -> tuple[Sequence[File], int]:
    file = Arriving(max_bytes=service.settings.max_upload_bytes)
    storing = asyncio.create_task(service.captures.add(capture_id, file, name, kind))
    storing.add_done_callback(lambda _: file.abandon())
    try:
        await file.feed(request.stream())
    except ClientDisconnect:
        await asyncio.gather(storing, return_exceptions=True)
        raise UploadError(499, "the upload was interrupted") from None
    except BaseException:
        # The reader fails too; its own message explains less.
        await asyncio.gather(storing, return_exceptions=True)
        raise
    finally:
        metrics.UPLOADED_BYTES.inc(file.received_bytes)
    return await storing, file.received_bytes
