"""Back up a service's data to one tar file, and restore it into an empty folder and an empty database.

Rows are stored as JSON lines, independent of the database, so that a backup of SQLite can be restored to PostgreSQL.
A service may run during a backup: rows are read in one transaction, stored files never change, and captures that are
deleted meanwhile are left out. The secret of share link keys is left out unless it is asked for.
"""

import hashlib
import io
import json
import re
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from sqlalchemy import Table, func, insert, select

from tcpwin.errors import TcpwinError
from tcpwin_web.storage.database import Database
from tcpwin_web.storage.files import DataFolder
from tcpwin_web.storage.models import Base

VERSION = 1
MANIFEST, ROWS = "manifest.json", "rows/{}.jsonl"
KEYS = "keys/addresses"
_FILE = re.compile(r"files/[0-9a-f]{2}/([0-9a-f]{64})", re.ASCII)
_RESULT = re.compile(r"results/[A-Za-z0-9_-]{1,64}(?:/[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}){1,4}", re.ASCII)
_NUMBERED = ("host_pairs", "audit")
"""Tables whose ids the database assigns."""
BATCH_ROWS = 1000
COPY_BYTES = 1 << 20
MOST_MANIFEST_BYTES = 1 << 20


class BackupError(TcpwinError):
    """A backup cannot be made or restored."""


@dataclass(frozen=True)
class Copied:
    """What a backup holds: numbers of captures and files, and the bytes of the files."""

    captures: int
    files: int
    size_bytes: int


def _tables() -> list[Table]:
    return list(Base.metadata.sorted_tables)


async def back_up(database: Database, data: DataFolder, out: IO[bytes], *, keys: bool) -> Copied:
    """Write a backup.

    Args:
        keys: include the secret by which share links replace addresses.
    """
    rows: dict[str, list[dict[str, Any]]] = {}
    async with database.begin() as session:
        connection = await session.connection()
        # One snapshot for all tables.
        await database.read_consistently(session)
        for table in _tables():
            answer = await connection.execute(select(table))
            rows[table.name] = [dict(row) for row in answer.mappings()]
    with tarfile.open(fileobj=out, mode="w|") as archive:
        lost: set[str] = set()
        files, size_bytes = 0, 0
        for sha256 in sorted({each["sha256"] for each in rows["files"]}):
            try:
                size_bytes += _add(archive, data.blob(sha256), f"files/{sha256[:2]}/{sha256}")
                files += 1
            except FileNotFoundError:
                lost |= {each["capture_id"] for each in rows["files"] if each["sha256"] == sha256}
        for capture in rows["captures"]:
            folder = data.results(capture["id"])
            for path in sorted(folder.rglob("*")) if capture["results_version"] is not None else ():
                with suppress(FileNotFoundError):
                    if path.is_file():
                        _add(archive, path, f"results/{capture['id']}/{path.relative_to(folder).as_posix()}")
        if keys:
            _add(archive, data.keys / "addresses", KEYS)
        for name, found in rows.items():
            owner = "id" if name == "captures" else "capture_id"
            kept = [row for row in found if row.get(owner) not in lost] if lost else found
            rows[name] = kept
            _write(archive, ROWS.format(name), "".join(f"{json.dumps(row)}\n" for row in kept).encode())
        counts = {name: len(found) for name, found in rows.items()}
        manifest = {"version": VERSION, "revision": await database.revision(), "rows": counts}
        _write(archive, MANIFEST, json.dumps(manifest).encode())
    return Copied(len(rows["captures"]), files, size_bytes)


def _add(archive: tarfile.TarFile, path: Path, name: str) -> int:
    with path.open("rb") as file:
        info = tarfile.TarInfo(name)
        info.size = path.stat().st_size
        archive.addfile(info, file)
    return info.size


def _write(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))


async def restore(database: Database, data: DataFolder, source: IO[bytes]) -> Copied:
    """Restore a backup into an empty, prepared data folder and an empty, upgraded database.

    Raises:
        BackupError: either is not empty, the backup is damaged, or made by another version.
    """
    async with database.begin() as session:
        if await session.scalar(select(func.count()).select_from(Base.metadata.tables["captures"])):
            raise BackupError("the database holds captures already: restore into an empty one")
    rows: dict[str, list[dict[str, Any]]] = {}
    files, size_bytes, manifest = 0, 0, None
    try:
        with tarfile.open(fileobj=source, mode="r|") as archive:
            for member in archive:
                content = cast(IO[bytes], archive.extractfile(member)) if member.isfile() else None
                if content is None:
                    raise BackupError(f"not a backup: {member.name[:100]!r} is not a file")
                if found := _FILE.fullmatch(member.name):
                    _store(content, data.blob(found[1]), found[1])
                    files, size_bytes = files + 1, size_bytes + member.size
                elif _RESULT.fullmatch(member.name):
                    _store(content, data.path / member.name)
                elif member.name == KEYS:
                    _store(content, data.keys / "addresses")
                elif member.name == MANIFEST:
                    manifest = json.loads(content.read(MOST_MANIFEST_BYTES))
                else:
                    rows[member.name] = [json.loads(line) for line in content]
    except (tarfile.TarError, ValueError, EOFError) as error:
        raise BackupError(f"not a backup, or a damaged one: {error}") from None
    if manifest is None:
        raise BackupError("the backup is incomplete: its last part is missing")
    if (manifest.get("version"), manifest.get("revision")) != (VERSION, await database.revision()):
        raise BackupError("the backup was made by another version: restore it with that version, then upgrade")
    async with database.change() as session:
        for table in _tables():
            found_rows = rows.get(ROWS.format(table.name), [])
            if len(found_rows) != manifest["rows"].get(table.name):
                raise BackupError(f"the backup lacks rows of {table.name}")
            for batch in _batches(_known(table, found_rows)):
                await session.execute(insert(table), batch)
    return Copied(manifest["rows"]["captures"], files, size_bytes)


def _known(table: Table, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    names = {column.name for column in table.columns} - ({"id"} if table.name in _NUMBERED else set())
    return [{name: row[name] for name in names} for row in rows]


def _batches(rows: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    for start in range(0, len(rows), BATCH_ROWS):
        yield rows[start : start + BATCH_ROWS]


def _store(content: IO[bytes], path: Path, sha256: str | None = None) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with path.open("xb") as file:
        while chunk := content.read(COPY_BYTES):
            digest.update(chunk)
            file.write(chunk)
    if sha256 is not None and digest.hexdigest() != sha256:
        path.unlink()
        raise BackupError(f"the backup is damaged: the file {sha256[:12]}… has another content")
