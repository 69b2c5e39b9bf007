"""Notes on a capture and its parts."""

from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request, Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from tcpwin_web.api.parts import CaptureId, RowId, ServiceOf, plain, storable
from tcpwin_web.api.strict import Body
from tcpwin_web.notes import About, UnknownPlaceError
from tcpwin_web.storage.models import Note

router = APIRouter(tags=["notes"])

Text = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=4000),
    AfterValidator(storable),
    AfterValidator(plain),
]
Author = Annotated[
    str, StringConstraints(strip_whitespace=True, max_length=64), AfterValidator(storable), AfterValidator(plain)
]
Number = Annotated[int, Field(ge=0, lt=1 << 62)]


class NewNote(Body):
    """A note and its subject: the whole capture unless something is named."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "Before the change of tcp_rmem", "connection": 0, "author": "Ada"}]}
    )

    text: Text
    connection: Annotated[Number | None, Field(description="its number")] = None
    frame: Annotated[int | None, Field(ge=1, lt=1 << 62)] = None
    rule: Annotated[str | None, Field(pattern="^[A-Z]{2,4}[0-9]{3,5}$", description="code of a finding's rule")] = None
    author: Annotated[Author, Field(description="the author's name, as entered")] = ""


class NoteEntry(BaseModel):
    """A stored note."""

    id: str
    created_ns: int
    text: str
    connection: int | None
    frame: int | None
    rule: str | None
    author: str

    @classmethod
    def of(cls, note: Note) -> "NoteEntry":
        """Describe a row."""
        return cls(**{name: getattr(note, name) for name in cls.model_fields})


class NoteList(BaseModel):
    """Notes, oldest first."""

    notes: list[NoteEntry]


@router.post("/captures/{capture_id}/notes", status_code=201)
async def write_note(service: ServiceOf, request: Request, capture_id: CaptureId, new: NewNote) -> NoteEntry:
    """Write a note on a capture, a connection, a frame or a finding."""
    about = About(new.connection, new.frame, new.rule)
    try:
        note = await service.notes.write(capture_id, new.text, about, new.author)
    except UnknownPlaceError as error:
        raise HTTPException(422, str(error)) from None
    await service.audit.note(request, "note.write", capture_id)
    return NoteEntry.of(note)


@router.get("/captures/{capture_id}/notes")
async def list_notes(
    service: ServiceOf,
    capture_id: CaptureId,
    connection: Annotated[int | None, Query(ge=0, lt=1 << 62, description="only notes on this connection")] = None,
) -> NoteList:
    """List the notes of a capture."""
    await service.captures.get(capture_id)
    return NoteList(notes=[NoteEntry.of(each) for each in await service.notes.list(capture_id, connection=connection)])


@router.delete("/notes/{note_id}", status_code=204)
async def delete_note(service: ServiceOf, request: Request, note_id: RowId) -> Response:
    """Delete a note."""
    capture_id = await service.data.reserve.spend(lambda: service.notes.delete(note_id))
    if capture_id is None:
        raise HTTPException(404, "No note has this id.")
    await service.audit.note(request, "note.delete", capture_id)
    return Response(status_code=204)
