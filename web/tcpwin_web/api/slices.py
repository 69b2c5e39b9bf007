"""Packets to download: those of a connection, of a span, or the evidence of a finding, with comments."""

from collections.abc import Iterator
from typing import IO, Annotated

from fastapi import APIRouter, HTTPException, Query
from fastapi.responses import StreamingResponse

from tcpwin.model import DirectionName
from tcpwin_web.api.parts import Analysed, EndNs, ServiceOf, StartNs, attachment, check_span
from tcpwin_web.jobs.slices import write_slice

router = APIRouter(tags=["slices"])

MEDIA = "application/vnd.tcpdump.pcap"
"""Browsers and Wireshark use this type for pcap and pcapng."""
CHUNK_BYTES = 1 << 18


@router.get(
    "/captures/{capture_id}/slice",
    response_class=StreamingResponse,
    responses={200: {"content": {MEDIA: {"schema": {"type": "string", "format": "binary"}}}}},
)
async def show_slice(
    service: ServiceOf,
    capture: Analysed,
    connection: Annotated[int | None, Query(ge=0, le=(1 << 32) - 1, description="its number")] = None,
    code: Annotated[
        str | None,
        Query(max_length=10, description="a rule's code: the frames that prove its finding", examples=["TW201"]),
    ] = None,
    direction: Annotated[DirectionName | None, Query(description="of the finding")] = None,
    start_ns: StartNs = None,
    end_ns: EndNs = None,
) -> StreamingResponse:
    """Return packets as pcapng for Wireshark: the stored headers, with comments that explain the findings.

    Select a connection, a span, both, or the evidence of a finding with its surroundings.
    """
    check_span(start_ns, end_ns)
    if connection is None and code is None and start_ns is None and end_ns is None:
        raise HTTPException(422, "Select packets by a connection, a rule's code, or a span.")
    if code is not None and (start_ns is not None or end_ns is not None):
        raise HTTPException(422, "A finding's frames cannot be limited to a span: pass one or the other.")
    file_set = await service.queue.file_set(capture.id)
    with service.data.incoming() as place:
        path = place.path / "slice.pcapng"
        await service.queue.run(
            write_slice, file_set, str(path), connection, code and code.upper(), direction, start_ns, end_ns
        )
        # Unlinking removes the name at once; the open file is still sent.
        file, size = path.open("rb"), path.stat().st_size
    what = "".join(
        f"-{part}" for part in (None if connection is None else f"connection-{connection}", code) if part is not None
    )
    headers = {"Content-Disposition": attachment(capture.name, "pcapng", suffix=what), "Content-Length": str(size)}
    return StreamingResponse(_chunks(file), media_type=MEDIA, headers=headers)


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk
