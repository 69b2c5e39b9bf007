"""The retention policy: what is deleted by age and by size. Captures with the tag `pinned`, and bundled ones, stay."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select

from tcpwin_web.storage import Database
from tcpwin_web.storage.models import Capture, File, Tag, now_ns

PINNED = "pinned"


@dataclass(frozen=True)
class Due:
    """A capture to delete, and why: its age, or the size of all."""

    id: str
    name: str
    size_bytes: int
    reason: str


async def due(database: Database, most_bytes: int) -> Sequence[Due]:
    """Return the captures that are due for deletion now, oldest first.

    Args:
        most_bytes: limit of all stored files; 0 for none.
    """
    pinned = select(Tag.capture_id).where(Tag.tag == PINNED)
    size = func.coalesce(func.sum(File.size_bytes), 0)
    query = select(Capture, size).outerjoin(File).group_by(Capture.id).order_by(Capture.created_ns, Capture.id)
    async with database.begin() as session:
        may_go = set(
            await session.scalars(select(Capture.id).where(Capture.origin.is_(None), Capture.id.not_in(pinned)))
        )
        rows = [(capture, int(total)) for capture, total in await session.execute(query)]
    found = [
        Due(capture.id, capture.name, total, "age")
        for capture, total in rows
        if capture.id in may_go and capture.expires_ns is not None and capture.expires_ns < now_ns()
    ]
    gone = {each.id for each in found}
    left = sum(total for capture, total in rows if capture.id not in gone)
    for capture, total in rows:
        # Deleting a capture without files frees nothing, and an upload may be in progress.
        is_idle = capture.status not in ("open", "queued", "running")
        if most_bytes and left > most_bytes and total and is_idle and capture.id in may_go - gone:
            found.append(Due(capture.id, capture.name, total, "size"))
            left -= total
    return found
