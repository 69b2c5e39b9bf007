"""Notes on a capture, a connection, a frame or a finding, as rows."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select

from tcpwin.render.report import Note as ReportNote
from tcpwin_web.captures import ConflictError, NotFoundError
from tcpwin_web.storage import Database
from tcpwin_web.storage.models import Capture, Note

MOST_NOTES = 500
"""Maximum number of notes per capture: a page shows all of them."""


@dataclass(frozen=True)
class About:
    """Subject of a note: the whole capture unless something is named.

    Attributes:
        connection, frame: numbers in the analysis.
        rule: code of a finding's rule.
    """

    connection: int | None = None
    frame: int | None = None
    rule: str | None = None

    @property
    def text(self) -> str:
        """The subject in words."""
        parts = [
            self.rule or "",
            "" if self.connection is None else f"connection {self.connection}",
            "" if self.frame is None else f"frame {self.frame:,}",
        ]
        return ", ".join(part for part in parts if part)


class UnknownPlaceError(Exception):
    """There is no such connection or frame."""


class Notes:
    """All notes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def write(self, capture_id: str, text: str, about: About, author: str = "") -> Note:
        """Store a note.

        Raises:
            NotFoundError: there is no such capture.
            UnknownPlaceError: it has no such connection or frame.
            ConflictError: it is not analysed yet, or has `MOST_NOTES` already.
        """
        async with self._database.change() as session:
            capture = await session.get(Capture, capture_id)
            if capture is None:
                raise NotFoundError(capture_id)
            if not capture.has_results:
                raise ConflictError(f"notes need a finished analysis; this one is {capture.status}")
            if about.connection is not None and about.connection >= (capture.connections or 0):
                raise UnknownPlaceError(f"The capture has no connection {about.connection}.")
            if about.frame is not None and about.frame > (capture.packets or 0):
                raise UnknownPlaceError(f"The capture has no frame {about.frame:,}.")
            count = await session.scalar(select(func.count()).select_from(Note).where(Note.capture_id == capture_id))
            if (count or 0) >= MOST_NOTES:
                raise ConflictError(f"a capture can have at most {MOST_NOTES} notes: delete one first")
            note = Note(
                capture_id=capture_id,
                text=text,
                author=author,
                connection=about.connection,
                frame=about.frame,
                rule=about.rule,
            )
            session.add(note)
        return note

    async def list(self, capture_id: str, *, connection: int | None = None) -> Sequence[Note]:
        """Return the notes of a capture, or of one of its connections, oldest first."""
        query = select(Note).where(Note.capture_id == capture_id)
        if connection is not None:
            query = query.where(Note.connection == connection)
        async with self._database.begin() as session:
            return (await session.scalars(query.order_by(Note.created_ns, Note.id))).all()

    async def delete(self, note_id: str) -> str | None:
        """Delete a note; return its capture's id, or None if there is no such note."""
        async with self._database.change() as session:
            note = await session.get(Note, note_id)
            if note is None:
                return None
            await session.delete(note)
            return note.capture_id


def about_of(note: Note) -> About:
    """Return a note's subject."""
    return About(note.connection, note.frame, note.rule)


def reported(notes: Sequence[Note]) -> list[ReportNote]:
    """Return notes in the form that reports take."""
    return [ReportNote(each.text, about_of(each).text, each.author, each.created_ns) for each in notes]
