"""Split a bundle with several captures into one row per capture, without accessing the database."""

from collections.abc import Sequence, Set

from tcpwin_web.storage.models import Capture, File, Tag

MAX_NAME = 255


def tell_apart(files: Sequence[File], taken: Set[str]) -> None:
    """Rename captures of a bundle whose names another bundle of the same upload has taken."""
    if not taken & {file.part for file in files if file.part}:
        return
    number = 2
    while taken & {f"{file.part} ({number})" for file in files}:
        number += 1
    for file in files:
        if file.part:
            file.part = f"{file.part[: MAX_NAME - 10]} ({number})"


def split(capture: Capture) -> list[Capture]:
    """Create captures for all but the first capture in a bundle, which keeps the row.

    Each has all snapshots: a connection has two ends, and its sockets show which of them a host was.
    """
    parts = list(dict.fromkeys(file.part for file in capture.files if file.kind == "capture"))
    if len(parts) < 2:
        return []
    name, files = capture.name, list(capture.files)
    capture.bundle_id = capture.id
    made = []
    for number, part in enumerate(parts):
        of_part = capture
        if number:
            of_part = Capture(
                origin=None if capture.origin is None else f"{capture.origin}#{number}",
                bundle_id=capture.id,
                expires_ns=capture.expires_ns,
                uploaded_bytes=capture.uploaded_bytes,
                window_scales=capture.window_scales,
                selection=capture.selection,
                tags=[Tag(tag=tag.tag) for tag in capture.tags],
            )
            made.append(of_part)
        of_part.name = f"{name[: max(MAX_NAME - len(part) - 2, 0)]}: {part}"[:MAX_NAME] if part else name
        of_part.files = [
            _copied(file) if number and file.kind == "snapshot" else file
            for file in files
            if file.kind == "snapshot" or file.part == part
        ]
    return made


def _copied(file: File) -> File:
    columns = (column.key for column in File.__table__.columns if column.key not in ("id", "capture_id"))
    return File(**{name: getattr(file, name) for name in columns})
