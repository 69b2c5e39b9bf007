"""Resumable uploads of a capture's files: tus 1.0.0 (https://tus.io/protocols/resumable-upload).

Extensions: creation, termination and expiration. Asking for an upload's offset ends the request that is sending it:
a client asks only after it lost its connection.
"""

import base64
import binascii
import re
import time
from email.utils import formatdate
from typing import Annotated, get_args

from fastapi import APIRouter, Depends, Header, HTTPException, Request, Response
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tcpwin_web.api.parts import CaptureId, RowId, ServiceOf, storable
from tcpwin_web.resumables import Resumable, require_offset
from tcpwin_web.service import Service
from tcpwin_web.uploads.kinds import Kind
from tcpwin_web.uploads.stream import UploadError

VERSION = "1.0.0"
EXTENSIONS = "creation,termination,expiration"
MEDIA = "application/offset+octet-stream"
MAX_LENGTH = (1 << 63) - 1
BODY = {
    "requestBody": {"required": True, "content": {MEDIA: {"schema": {"type": "string", "format": "binary"}}}},
}


async def speaks_tus(
    service: ServiceOf,
    tus_resumable: Annotated[str, Header(description="protocol version", examples=[VERSION])] = "",
) -> Service:
    """Return the service for a client of this protocol version."""
    if tus_resumable != VERSION:
        raise HTTPException(412, f"Send Tus-Resumable: {VERSION}.", {"Tus-Version": VERSION})
    return service


Tus = Annotated[Service, Depends(speaks_tus)]
router = APIRouter(tags=["uploads"])
PLACE = "/captures/{capture_id}/uploads"
_UPLOAD = re.compile(r"/api/v1/captures/[^/]+/uploads/[^/]+")


class TusHeaders:
    """ASGI middleware: add the protocol version to every answer to tus clients, errors included.

    Clients that cannot send PATCH or DELETE use POST with `X-HTTP-Method-Override`; all three need the same scope.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_version(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["Tus-Resumable"] = VERSION
            await send(message)

        if scope["type"] != "http" or "tus-resumable" not in (headers := Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        meant = headers.get("x-http-method-override", "")
        if scope["method"] == "POST" and meant in ("PATCH", "DELETE") and _UPLOAD.fullmatch(scope["path"]):
            scope["method"] = meant
        await self._app(scope, receive, send_with_version)


@router.options(PLACE, status_code=204)
async def describe_uploads(service: ServiceOf, capture_id: CaptureId) -> Response:  # noqa: ARG001 (of the path)
    """Report the supported parts of the protocol."""
    most = str(service.settings.max_upload_bytes)
    headers = {
        "Tus-Resumable": VERSION,
        "Tus-Version": VERSION,
        "Tus-Extension": EXTENSIONS,
        "Tus-Max-Size": most,
    }
    return Response(status_code=204, headers=headers)


@router.post(PLACE, status_code=201)
async def begin_upload(
    service: Tus,
    request: Request,
    capture_id: CaptureId,
    upload_length: Annotated[int | None, Header(ge=0, le=MAX_LENGTH, description="length of the file, bytes")] = None,
    upload_metadata: Annotated[
        str,
        Header(
            max_length=4096,
            description="`filename`, and `kind` (capture, snapshot, bundle) to override detection; in base64",
            examples=["filename c2xvdy5wY2Fw"],
        ),
    ] = "",
) -> Response:
    """Begin an upload of a file to an open capture: `Location` is its address, `Upload-Expires` its deadline."""
    if upload_length is None:
        raise HTTPException(400, "Upload-Length is missing.")
    metadata = _metadata(upload_metadata)
    kind = metadata.get("kind") or None
    if kind is not None and kind not in get_args(Kind):
        raise HTTPException(400, f"kind is one of {', '.join(get_args(Kind))}.")
    service.rates.take("upload", request)
    made = await service.resumables.create(capture_id, metadata.get("filename", ""), kind, upload_length)  # type: ignore[arg-type]
    place = f"{request.scope['path'].rstrip('/')}/{made.id}"
    return Response(status_code=201, headers={"Location": place, **_state(service, made)})


@router.get(f"{PLACE}/{{upload_id}}", status_code=204)
async def show_upload(service: Tus, capture_id: CaptureId, upload_id: RowId) -> Response:
    """Report how much of an upload has arrived (`Upload-Offset`); also for HEAD."""
    found = await service.resumables.get(capture_id, upload_id)
    return Response(status_code=204, headers={"Upload-Length": str(found.length_bytes), **_state(service, found)})


@router.patch(f"{PLACE}/{{upload_id}}", status_code=204, openapi_extra=BODY)
async def go_on_with_upload(
    service: Tus,
    request: Request,
    capture_id: CaptureId,
    upload_id: RowId,
    upload_offset: Annotated[
        int | None, Header(ge=0, le=MAX_LENGTH, description="offset of the body in the file")
    ] = None,
) -> Response:
    """Send the next part of a file as the body. After its last byte the file belongs to the capture."""
    if request.headers.get("content-type") != MEDIA:
        raise HTTPException(415, f"The body must have the type {MEDIA}.")
    if upload_offset is None:
        raise HTTPException(400, "Upload-Offset is missing.")
    found = await service.resumables.get(capture_id, upload_id)
    require_offset(found, upload_offset)
    if upload_offset == found.length_bytes:
        return Response(status_code=204, headers=_state(service, found))
    async with service.uploads():
        try:
            await service.resumables.write(found, upload_offset, request.stream())
        except ClientDisconnect:
            raise UploadError(499, "the upload was interrupted") from None
    if found.offset_bytes == found.length_bytes:
        await service.audit.note(request, "file.upload", capture_id)
    return Response(status_code=204, headers=_state(service, found))


@router.delete(f"{PLACE}/{{upload_id}}", status_code=204)
async def end_upload(service: Tus, capture_id: CaptureId, upload_id: RowId) -> Response:
    """Cancel an upload: an unfinished one is deleted, the file of a finished one stays."""
    await service.resumables.delete(await service.resumables.get(capture_id, upload_id))
    return Response(status_code=204)


def _state(service: Service, upload: Resumable) -> dict[str, str]:
    left = service.resumables.left_seconds(upload)
    return {"Upload-Offset": str(upload.offset_bytes), "Upload-Expires": formatdate(time.time() + left, usegmt=True)}


def _metadata(header: str) -> dict[str, str]:
    """Parse the client's metadata: keys with optional base64 values."""
    metadata = {}
    for pair in filter(None, map(str.strip, header.split(","))):
        key, _, value = pair.partition(" ")
        if key in metadata:
            # The protocol requires unique keys.
            raise HTTPException(400, f"Upload-Metadata: {key} is repeated.")
        try:
            metadata[key] = storable(base64.b64decode(value, validate=True).decode())
        except (binascii.Error, ValueError):
            raise HTTPException(400, f"Upload-Metadata: the value of {key} is not base64 text.") from None
    return metadata
