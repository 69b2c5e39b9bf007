"""Captures as rows: create, list, change, start, delete. Independent of requests and pages.

Deleting a capture removes its rows, its results, and every file that no other capture uses.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import structlog
from sqlalchemy import ColumnElement, delete, func, or_, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import selectinload

from tcpwin.sources import Selection
from tcpwin_web import bundles, shown
from tcpwin_web.jobs.queue import OWNER, Queue
from tcpwin_web.ledger import Disk, Share
from tcpwin_web.results import layout
from tcpwin_web.retention import due
from tcpwin_web.selecting import check_filter
from tcpwin_web.settings import Settings
from tcpwin_web.slots import FairSemaphore, current_caller
from tcpwin_web.storage import Database, DataFolder
from tcpwin_web.storage.models import Capture, File, Job, Tag, now_ns
from tcpwin_web.uploads.kinds import Kind
from tcpwin_web.uploads.receive import Received, receive, show_name, text_name
from tcpwin_web.uploads.stream import Arriving, UploadError

DAY_NS = 86_400 * 10**9
MAX_TAGS = 20
NO_CAPTURE = (
    "no capture among the files, only host snapshots: add their capture, or read them with tcpwin ss and tcpwin nstat"
)
INTERRUPTED = "the service stopped during an upload: send the missing files again"
OVER = ("done", "failed", "cancelled")
LOST = "the database failed during an upload: send the missing files again"
SORTS = {
    "created": Capture.created_ns,
    "name": Capture.name,
    "packets": Capture.packets,
    "connections": Capture.connections,
    "findings": Capture.findings,
    "problems": Capture.problems,
    "size": Capture.uploaded_bytes,
}

log = structlog.get_logger("tcpwin.captures")


class NotFoundError(Exception):
    """There is no such capture."""


class ConflictError(Exception):
    """The capture's state does not allow it; the message says why."""


class Captures:
    """All captures of the service."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        data: DataFolder,
        disk: Disk,
        queue: Queue,
        threads: ThreadPoolExecutor,
    ) -> None:
        """Create the collection.

        Args:
            threads: for receiving uploads only: each of them waits for somebody's network.
        """
        self._settings = settings
        self._threads = threads
        self._database = database
        self._data = data
        self._disk = disk
        self._queue = queue
        # Between a file's arrival and the insertion of its row, it must not be deleted as unused.
        self._files = FairSemaphore(1, each=1, guests=1, outlasts_callers=True)
        self._lost: set[str] = set()
        """Captures whose upload lost the database."""
        self._doubtful: set[str] = set()
        """Files that such uploads may have left."""

    async def create(
        self,
        name: str,
        tags: Sequence[str] = (),
        *,
        origin: str | None = None,
        window_scales: Mapping[str, int] | None = None,
        selection: Selection | None = None,
    ) -> Capture:
        """Create a capture without files.

        Raises:
            JobError: its filter is invalid.
        """
        if selection is not None and selection.filter is not None:
            await self._queue.run(check_filter, selection.filter)
        days = self._settings.retention_days
        expires_ns = now_ns() + int(days * DAY_NS) if days and origin is None else None
        async with self._database.change() as session:
            capture = Capture(
                name=show_name(name),
                origin=origin,
                expires_ns=expires_ns,
                window_scales=dict(window_scales or {}) or None,
                selection=None if selection is None else selection.to_dict(),
                tags=_tags(tags),
            )
            session.add(capture)
        return capture

    async def get(self, capture_id: str) -> Capture:
        """Return a capture with its files and tags.

        Raises:
            NotFoundError: no capture has this id.
        """
        async with self._database.begin() as session:
            return await self._load(session, capture_id)

    async def get_all(self, capture_ids: Iterable[str]) -> dict[str, Capture]:
        """Return those of these captures that exist, with their files, by id."""
        async with self._database.begin() as session:
            query = select(Capture).where(Capture.id.in_(capture_ids)).options(selectinload(Capture.files))
            return {capture.id: capture for capture in await session.scalars(query)}

    async def exists(self, capture_id: str) -> bool:
        """Whether there is such a capture; True if the database does not respond."""
        try:
            async with self._database.begin() as session:
                return await session.get(Capture, capture_id) is not None
        except SQLAlchemyError:
            return True

    async def of_bundle(self, capture: Capture) -> Sequence[Capture]:
        """Return the other captures of the same bundle, such as the one from the other end."""
        if capture.bundle_id is None:
            return ()
        async with self._database.begin() as session:
            query = select(Capture).where(Capture.bundle_id == capture.bundle_id, Capture.id != capture.id)
            return (await session.scalars(query.order_by(Capture.created_ns, Capture.name))).all()

    async def search(
        self,
        *,
        text: str = "",
        tag: str = "",
        status: str = "",
        bundle: str = "",
        sort: str = "-created",
        offset: int = 0,
        limit: int = 50,
    ) -> tuple[Sequence[Capture], int]:
        """Return a page of captures, and the total number of matches."""
        conditions: list[ColumnElement[bool]] = []
        if text:
            words = Capture.name.icontains(text, autoescape=True)
            conditions.append(or_(words, Capture.summary.icontains(text, autoescape=True)))
        if tag:
            conditions.append(Capture.id.in_(select(Tag.capture_id).where(Tag.tag == tag)))
        if status:
            conditions.append(Capture.status == status)
        if bundle:
            conditions.append(Capture.bundle_id == bundle)
        column = SORTS[sort.removeprefix("-")]
        order = column.desc() if sort.startswith("-") else column.asc()
        async with self._database.begin() as session:
            total = await session.scalar(select(func.count()).select_from(Capture).where(*conditions))
            # Rows without a value last, in both databases.
            query = select(Capture).where(*conditions).order_by(column.is_(None), order, Capture.id)
            found = (await session.scalars(query.offset(offset).limit(limit))).all()
        return found, total or 0

    async def choices(self, *, limit: int = 1000) -> list[tuple[str, str]]:
        """Return ids and names of the newest analysed captures."""
        async with self._database.begin() as session:
            query = select(Capture.id, Capture.name).where(Capture.status == "done")
            rows = await session.execute(query.order_by(Capture.created_ns.desc(), Capture.id).limit(limit))
            return [(id, name) for id, name in rows]

    async def tags(self) -> list[tuple[str, int]]:
        """Return every tag with its number of captures."""
        async with self._database.begin() as session:
            rows = await session.execute(select(Tag.tag, func.count()).group_by(Tag.tag).order_by(Tag.tag))
            return [(tag, count) for tag, count in rows]

    async def change(self, capture_id: str, *, name: str | None, tags: Sequence[str] | None) -> Capture:
        """Change the name or tags of a capture."""
        async with self._database.change() as session:
            capture = await self._load(session, capture_id)
            if name is not None:
                capture.name = show_name(name)
            if tags is not None:
                known = {tag.tag: tag for tag in capture.tags}
                capture.tags = [known.get(tag.tag, tag) for tag in _tags(tags)]
        return capture

    async def add(
        self,
        capture_id: str,
        file: Arriving,
        name: str,
        kind: Kind | None = None,
        *,
        threads: ThreadPoolExecutor | None = None,
    ) -> Sequence[File]:
        """Store an upload as files of an open capture.

        Args:
            threads: other threads than those of uploads in one request.

        Raises:
            NotFoundError, ConflictError, UploadError, OSError: it cannot be accepted.
        """
        await self.require_open(capture_id)
        token = None if current_caller().is_owner else current_caller().credential
        async with self._database.begin() as session:
            stored_bytes = await _stored_bytes(session, token)
        with self._data.incoming() as incoming, self._disk.share(token, stored_bytes) as share:
            try:
                received = await asyncio.get_running_loop().run_in_executor(
                    threads or self._threads, receive, file, name, kind, incoming, self._data, self._settings, share
                )
                async with self._files.take():
                    return await self._store(capture_id, received, file.received_bytes, share)
            except BaseException as error:
                if isinstance(error, SQLAlchemyError):
                    self._lost.add(capture_id)
                try:
                    async with self._files.take():
                        await self._forget_unused(incoming.kept)
                except (SQLAlchemyError, OSError) as failure:
                    # Which files are unused shows once the database responds.
                    self._database.note_failure(failure)
                    self._doubtful.update(incoming.kept)
                raise

    async def require_open(self, capture_id: str) -> None:
        """Raise NotFoundError or ConflictError unless a capture accepts files."""
        _check_open(await self.get(capture_id))

    async def _store(
        self, capture_id: str, received: Sequence[Received], received_bytes: int, share: Share
    ) -> Sequence[File]:
        if not all(self._data.blob(each.sha256).exists() for each in received):
            raise ConflictError("the same file was just deleted; send it again")
        async with self._database.change() as session:
            capture = await self._load(session, capture_id)
            _check_open(capture)
            if len(capture.files) + len(received) > self._settings.max_files:
                raise UploadError(413, f"a capture may have {self._settings.max_files} files at most")
            # Another upload of the same token may have been stored meanwhile.
            share.stored_bytes = await _stored_bytes(session, share.token)
            if refusal := share.refusal:
                raise UploadError(507, refusal)
            first = len(capture.files)
            files = [
                File(position=first + number, uploader=share.token, **asdict(each))
                for number, each in enumerate(received)
            ]
            bundles.tell_apart(files, {file.part for file in capture.files})
            capture.files.extend(files)
            capture.uploaded_bytes += received_bytes
            capture.status, capture.failure = "open", None
        self._lost.discard(capture_id)
        return files

    async def start(self, capture_id: str) -> Sequence[Capture]:
        """Queue an analysis of a capture, unless one is queued or running.

        Each capture of a bundle becomes its own capture, with the same snapshots; return all captures that were
        queued, the one with this id first.
        """
        async with self._database.change() as session:
            capture = await self._load(session, capture_id)
            if capture.status in ("queued", "running"):
                raise ConflictError("the analysis is already queued or running")
            if not capture.files:
                raise ConflictError("the capture has no files yet")
            if not any(file.kind == "capture" for file in capture.files):
                raise UploadError(422, NO_CAPTURE)
            started = [capture, *bundles.split(capture)]
            session.add_all(started)
            await session.flush()
            # Whoever starts and cancels an analysis again and again must not fill the table.
            await session.execute(delete(Job).where(Job.capture_id == capture_id, Job.status.in_(OVER)))
            for each in started:
                session.add(Job(capture_id=each.id, owner=_owner()))
                each.status, each.failure = "queued", None
        self._queue.wake()
        return started

    async def cancel(self, capture_id: str) -> Capture:
        """Cancel the analysis of a capture, queued or running."""
        async with self._database.change() as session:
            capture = await self._load(session, capture_id)
            jobs = (await session.scalars(select(Job).where(Job.capture_id == capture_id))).all()
            for job in jobs:
                if job.status == "queued":
                    job.status, job.finished_ns = "cancelled", now_ns()
                    capture.status = "done" if capture.has_results else "cancelled"
        self._queue.end(capture_id)
        return capture

    async def delete(self, capture_id: str) -> None:
        """Delete a capture with everything that belongs to it, even on a full disk."""
        await self._data.reserve.spend(lambda: self._delete(capture_id))

    async def _delete(self, capture_id: str) -> None:
        self._queue.end(capture_id)
        async with self._files.take():
            async with self._database.begin() as session:
                if await session.get(Capture, capture_id) is None:
                    raise NotFoundError(capture_id)
                hashes = (await session.scalars(select(File.sha256).where(File.capture_id == capture_id))).all()
            with self._data.leaving(hashes, capture_id):
                async with self._database.change() as session:
                    # The database also deletes what others have just added to the capture.
                    await session.execute(delete(Capture).where(Capture.id == capture_id))
                await self._forget_unused(hashes)
                await asyncio.to_thread(self._data.forget_results, capture_id)
        await self._database.forget()

    async def _forget_unused(self, hashes: Sequence[str]) -> None:
        if not hashes:
            return
        async with self._database.begin() as session:
            used = set(await session.scalars(select(File.sha256).where(File.sha256.in_(hashes))))
        for sha256 in set(hashes) - used:
            await asyncio.to_thread(self._data.forget, sha256)

    async def recover(self) -> None:
        """Clean up after an earlier service before this one starts, and queue results of earlier versions again."""
        hashes, ids = self._data.doubtful()
        await self._forget_unused(hashes)
        # A worker may have written after its capture was deleted, as the service ended.
        with_results = {*ids, *await asyncio.to_thread(self._data.ids_with_results)}
        async with self._database.change() as session:
            there = set(await session.scalars(select(Capture.id)))
            await session.execute(
                update(Capture).where(Capture.status == "open").values(status="failed", failure=INTERRUPTED)
            )
            is_old = or_(Capture.results_version.is_(None), Capture.results_version != layout.VERSION)
            for capture in await session.scalars(select(Capture).where(Capture.status == "done", is_old)):
                session.add(Job(capture_id=capture.id))
                capture.status, capture.results_version = "queued", None
        for capture_id in with_results - there:
            await asyncio.to_thread(self._data.forget_results, capture_id)
        await asyncio.to_thread(self._data.clear_incoming)

    async def delete_if_empty(self, capture_id: str) -> None:
        """Delete a capture that waits for files of an upload that was abandoned."""
        with suppress(NotFoundError):
            capture = await self.get(capture_id)
            if capture.status == "open" and not capture.files:
                await self.delete(capture_id)

    async def give_up(self, capture_id: str) -> None:
        """Delete a capture whose upload failed; if the database does not respond, mark it as failed later."""
        try:
            await self.delete(capture_id)
        except NotFoundError:
            pass
        except (SQLAlchemyError, OSError) as error:
            self._database.note_failure(error)
            self._lost.add(capture_id)

    async def settle_lost(self) -> None:
        """Mark captures as failed whose upload lost the database, and delete files that it left."""
        if not self._lost and not self._doubtful:
            return
        lost, doubtful = set(self._lost), set(self._doubtful)
        async with self._database.change() as session:
            await session.execute(
                update(Capture)
                .where(Capture.id.in_(lost), Capture.status == "open")
                .values(status="failed", failure=LOST)
            )
        self._lost -= lost
        async with self._files.take():
            await self._forget_unused(list(doubtful))
        self._doubtful -= doubtful

    async def sweep(self) -> int:
        """Delete the captures that are due by the retention policy, and return their number."""
        over = await due(self._database, self._settings.retention_bytes)
        for each in over:
            try:
                await self.delete(each.id)
            except NotFoundError:
                continue
            log.info("capture expired", capture=each.id, reason=each.reason)
        return len(over)

    async def add_shown(self, path: Path) -> str | None:
        """Store a file named when the service started, unless its current version is already stored.

        Returns:
            Why it cannot be shown, in words; None if it can.
        """
        status = await asyncio.to_thread(path.stat)
        name = text_name(path.name)
        # Distinct names that are not valid text must stay distinct.
        place = os.fsencode(path.resolve()).decode("utf8", "backslashreplace")
        origin = f"{place}:{status.st_size}:{status.st_mtime_ns}"
        async with self._database.begin() as session:
            # For a bundle, any of its captures that still exists.
            is_it = or_(Capture.origin == origin, Capture.origin.startswith(f"{origin}#", autoescape=True))
            known = (await session.scalars(select(Capture).where(is_it).options(selectinload(Capture.jobs)))).all()
        if any(each.jobs for each in known):
            return None
        for each in known:
            # It was not stored then, or only in part.
            await self.delete(each.id)
        capture = await self.create(name, ["bundled"] if shown.is_bundled(path) else [], origin=origin)
        try:
            file = Arriving(max_bytes=status.st_size)
            feeding = asyncio.create_task(file.feed(_chunks(path)))
            try:
                await self.add(capture.id, file, name)
            finally:
                # Stop reading a refused file: no client waits for the answer.
                feeding.cancel()
                await asyncio.gather(feeding, return_exceptions=True)
                file.abandon()
            await self.start(capture.id)
        except (UploadError, OSError) as error:
            await self.delete(capture.id)
            return str(error)
        return None

    async def _load(self, session: AsyncSession, capture_id: str) -> Capture:
        capture = await session.get(Capture, capture_id, options=[selectinload(Capture.files)])
        if capture is None:
            raise NotFoundError(capture_id)
        return capture


async def _stored_bytes(session: AsyncSession, token: str | None) -> int:
    """Return the size of all files that a token uploaded."""
    if token is None:
        return 0
    return await session.scalar(select(func.sum(File.size_bytes)).where(File.uploader == token)) or 0


def _owner() -> str:
    caller = current_caller()
    return f"{OWNER}{caller.name}"[:128] if caller.is_owner else caller.name


def _check_open(capture: Capture) -> None:
    if capture.status != "open" and capture.failure not in (INTERRUPTED, LOST):
        raise ConflictError(f"files can only be added to an open capture; this one is {capture.status}")


async def _chunks(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while chunk := await asyncio.to_thread(file.read, 1 << 18):
            yield chunk


def _tags(words: Sequence[str]) -> list[Tag]:
    unique = dict.fromkeys(word.strip().lower()[:64] for word in words if word.strip())
    return [Tag(tag=word) for word in list(unique)[:MAX_TAGS]]
