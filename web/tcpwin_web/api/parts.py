"""Common parts of the routes: the service, query parameters, and tables as JSON or Arrow."""

import io
import json
import re
from typing import Annotated, Any, Literal, cast
from unicodedata import category
from urllib.parse import quote

import polars
from fastapi import Depends, HTTPException, Path, Query, Request
from fastapi.responses import Response
from pydantic import AfterValidator

from tcpwin.units import count_text
from tcpwin_web.captures import ConflictError
from tcpwin_web.service import Service
from tcpwin_web.storage.models import Capture

ARROW = "application/vnd.apache.arrow.stream"
MAX_ROWS = 10_000
MAX_OFFSET = 1 << 40
MAX_NS = (1 << 63) - 1


def service_of(request: Request) -> Service:
    """Return the running service."""
    return cast(Service, request.app.state.service)


ServiceOf = Annotated[Service, Depends(service_of)]


ID_PATTERN = r"^[A-Za-z0-9_-]+$"
DIRECTION_MARKS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Characters that change text direction (Unicode Standard Annex 9 §2)."""


def storable(text: str) -> str:
    """Return a text that the database can store; raise ValueError otherwise."""
    # PostgreSQL cannot store NUL.
    if "\0" in text:
        raise ValueError("a NUL character cannot be stored")
    # JSON can contain lone surrogates, which are not characters.
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("half of a character cannot be stored")
    return text


def plain(text: str) -> str:
    """Replace control characters and direction marks, since reports repeat the text on terminals."""

    def shown(character: str) -> str:
        is_control = category(character) == "Cc" and character not in "\n\t"
        return "\N{REPLACEMENT CHARACTER}" if is_control or character in DIRECTION_MARKS else character

    return "".join(map(shown, text.replace("\r\n", "\n")))


Words = Annotated[str, AfterValidator(storable)]
CaptureId = Annotated[str, Path(max_length=64, pattern=ID_PATTERN, examples=["k3QWqxB0yJ8s2rTn"])]
RowId = Annotated[str, Path(max_length=64, pattern=ID_PATTERN)]
ConnectionId = Annotated[int, Path(ge=0, le=(1 << 32) - 1, examples=[0])]
Offset = Annotated[int, Query(ge=0, le=MAX_OFFSET, description="rows to skip")]
Limit = Annotated[int, Query(ge=1, le=MAX_ROWS, description="rows at most")]
StartNs = Annotated[int | None, Query(ge=-MAX_NS, le=MAX_NS, description="from this time, ns since the Unix epoch")]
EndNs = Annotated[int | None, Query(ge=-MAX_NS, le=MAX_NS, description="up to this time, ns since the Unix epoch")]
Format = Annotated[Literal["json", "arrow"] | None, Query(description="json, or arrow: an Arrow IPC stream")]


def check_span(start_ns: int | None, end_ns: int | None) -> None:
    """Refuse a span that ends before it begins."""
    if start_ns is not None and end_ns is not None and end_ns < start_ns:
        raise HTTPException(422, "The span ends before it begins.")


async def analysed(service: ServiceOf, capture_id: CaptureId) -> Capture:
    """Return a capture with results, also while they are made again; answer 404 or 409 otherwise."""
    capture = await service.captures.get(capture_id)
    if capture.has_results:
        return capture
    if capture.status == "failed":
        raise ConflictError(f"its analysis failed: {capture.failure}")
    raise ConflictError(f"its analysis is not done: it is {capture.status}")


Analysed = Annotated[Capture, Depends(analysed)]


def having(capture: Analysed, connection_id: ConnectionId) -> Capture:
    """Return a capture; answer 404 if it has no such connection."""
    count = capture.connections or 0
    if connection_id >= count:
        raise HTTPException(404, f"This capture has {count_text(count, 'connection')}, numbered from 0.")
    return capture


Having = Annotated[Capture, Depends(having)]


async def detailed(service: ServiceOf, capture: Having, connection_id: ConnectionId) -> Capture:
    """Return a capture with the connection's details, made if necessary; answer 404 if it has no such connection."""
    await service.queue.detail(capture.id, connection_id)
    return capture


Detailed = Annotated[Capture, Depends(detailed)]

ARROW_RESPONSE: dict[int | str, dict[str, Any]] = {
    200: {"content": {ARROW: {"schema": {"type": "string", "format": "binary"}}}, "description": "the rows"}
}


def wants_arrow(request: Request, format: str | None) -> bool:
    """Whether the client requests Arrow, by the parameter or the Accept header."""
    return format == "arrow" if format else ARROW in request.headers.get("accept", "")


def arrow(rows: polars.DataFrame, **headers: Any) -> Response:
    """Return rows as an Arrow IPC stream; values that are not columns go into headers."""
    out = io.BytesIO()
    rows.write_ipc_stream(out)
    return Response(out.getvalue(), media_type=ARROW, headers={name: str(value) for name, value in headers.items()})


def as_json(value: Any) -> Response:
    """Return plain values as JSON, with null for nan and infinity."""
    return Response(json_text(value), media_type="application/json")


def json_text(value: Any) -> str:
    """Return the text of `as_json`."""
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return value


def attachment(name: str, ending: str, *, suffix: str = "") -> str:
    """Content-Disposition of a file derived from a capture, named after it."""
    stem = re.sub(r"(\.(pcap|pcapng|cap|zip|tar|tgz|gz|zst|lz4))+$", "", name, flags=re.IGNORECASE) or "report"
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-.") or "report"
    return (
        f"attachment; filename=\"{plain}{suffix}.{ending}\"; filename*=UTF-8''{quote(stem, safe='')}{suffix}.{ending}"
    )
