"""Common parts of the pages of two captures: the query, and their files."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Query

from tcpwin_web.jobs.work import FileSet
from tcpwin_web.service import Service

HEIGHT = 720
"""Height reserved for the figure before it is drawn, in pixels."""
CaptureChoice = Annotated[str, Query(max_length=64, pattern=r"^[A-Za-z0-9_-]*$")]


async def both_file_sets(service: Service, ids: Sequence[str]) -> list[FileSet]:
    """Return the files of the captures, in order; empty if an id is missing.

    Raises:
        HTTPException: 404, there is no such capture.
    """
    if not all(ids):
        return []
    for capture_id in ids:
        await service.captures.get(capture_id)
    return [await service.queue.file_set(each) for each in ids]
