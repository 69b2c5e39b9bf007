"""Measure one capture, and write its rows into the staging folder of a data set.

In: a task. Out: its outcome. What is wrong with the capture is a row; what is wrong with the data set is raised.
"""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tcpwin.errors import OutputError, TcpwinError
from tcpwin.fleet.rows import capture_row, day_of, rows_of
from tcpwin.fleet.schema import arrow_schema
from tcpwin.fleet.task import Outcome, Task

if TYPE_CHECKING:
    import pyarrow

    from tcpwin.analysis import Analysis

STAGING = ".staging"
"""Folder of what is being written; its name is hidden, so that no reader takes it for rows."""
MANY_ROWS = 5000
"""A table of more is written to be small; of fewer, what makes it small takes longer than it is worth."""
CAPTURE_COLUMNS = (
    *("packets", "segments", "not_tcp", "unread", "malformed", "first_time_ns", "last_time_ns", "duration_ns"),
    *("interface_drops", "packets_snapped", "missed_bytes", "capture_duplicates", "connections_without_syn"),
    *("connections_one_way", "connections_sampled"),
)
"""Attributes of `Capture` that have a column of that name."""


def perform(task: Task, folder: str, also: Sequence[str] = (), failure: str | None = None) -> Outcome:
    """Measure a capture.

    Args:
        folder: of the data set; where another machine runs this, it has to see it too.
        also: tables beside those that are always written.
        failure: why no process could bring it to its end; nothing is read then.

    Raises:
        OutputError: the rows cannot be written.
    """
    begun_ns = time.monotonic_ns()
    staged = _Staged(task, Path(folder), task.state(also))
    values: dict[str, Any] = {"files": len(task.files), "snapshots": len(task.snapshots)}
    values["file_bytes"] = sum(each.size_bytes for each in task.files)
    is_passing = failure is not None
    try:
        try:
            if failure or task.failure:
                raise TcpwinError(failure or task.failure)
            with _measured(task) as analysis:
                for table, day, rows in rows_of(analysis, task.key, also):
                    staged.write(table, day, rows)
                values |= _describe(analysis)
        except OutputError:
            raise
        except (TcpwinError, OSError, MemoryError) as error:
            staged.clear()
            is_passing = is_passing or not isinstance(error, TcpwinError)
            values["error"] = str(error) or "there is not enough memory to read it"
        values |= {"capture": task.key, "name": task.name, "tcpwin_version": version("tcpwin")}
        values["read_ns"] = time.monotonic_ns() - begun_ns
        staged.write("captures", day_of(values.get("first_time_ns")), capture_row(values))
        return staged.outcome(values, is_passing=is_passing)
    except BaseException:
        staged.discard()
        raise


@contextmanager
def _measured(task: Task) -> Iterator[Analysis]:
    """The analysis of a task; what was copied for it stays as long as a `with` statement lasts."""
    from tcpwin.fleet.objects import fetched, is_address
    from tcpwin.hosts import analyze

    if task.member is not None:
        yield analyze(task.files[0].path, capture=task.member)
        return
    if any(is_address(each.path) for each in task.files):
        with fetched(task) as (paths, beside):
            yield analyze(paths, snapshots=beside)
        return
    snapshots = [(each.label, each.path) if each.label else each.path for each in task.snapshots]
    yield analyze([each.path for each in task.files], snapshots=snapshots)


def _describe(analysis: Analysis) -> dict[str, Any]:
    """The columns of a capture that could be read."""
    capture = analysis.capture
    worst = analysis.worst(1)
    return {
        **{name: getattr(capture, name) for name in CAPTURE_COLUMNS},
        "warnings": [*map(str, capture.warnings), *analysis.notes, *analysis.findings.failed],
        "hosts": [host.label for host in analysis.hosts],
        "kernels": ["" if host.kernel is None else host.kernel.release for host in analysis.hosts],
        "connections": len(analysis),
        "problems": len(analysis.problems),
        "findings": len(analysis.findings),
        "worst_connection": worst[0].id if worst else None,
        "summary": analysis.summary.text,
    }


class _Staged:
    """Files that are being written, one for each table and day, in a folder of this attempt's own."""

    def __init__(self, task: Task, folder: Path, state: str) -> None:
        self._task = task
        self._state = state
        self._token = secrets.token_hex(8)
        self._folder = folder / STAGING / self._token
        self._writers: dict[str, Any] = {}
        self._rows: dict[str, int] = {}
        try:
            self._folder.mkdir()
        except FileNotFoundError:
            raise OutputError(f"{folder}: not seen by a worker; a data set's folder must be, by all of them") from None
        except OSError as error:
            raise OutputError(f"{folder}: {error.strerror or error}") from None

    def write(self, table: str, day: str, rows: pyarrow.Table) -> None:
        """Add rows to a table."""
        from pyarrow.parquet import ParquetWriter

        path = f"{table}/day={day}/site={quote(self._task.site, safe='')}/{self._task.key}-{self._state}.parquet"
        try:
            writer = self._writers.get(path)
            if writer is None:
                is_large = rows.num_rows > MANY_ROWS
                writer = self._writers[path] = ParquetWriter(
                    self._folder / staged_name(len(self._writers)),
                    arrow_schema(table),
                    compression="zstd" if is_large else "snappy",
                    use_dictionary=is_large,
                    write_statistics=is_large,
                    store_schema=False,
                )
            writer.write_table(rows)
        except OSError as error:
            raise OutputError(f"{self._folder.parent.parent}: {_reason(error)}") from None
        self._rows[table] = self._rows.get(table, 0) + rows.num_rows

    def outcome(self, values: dict[str, Any], *, is_passing: bool) -> Outcome:
        """Close the files, and tell what they hold."""
        try:
            for writer in self._writers.values():
                writer.close()
        except OSError as error:
            raise OutputError(f"{self._folder.parent.parent}: {_reason(error)}") from None
        return Outcome(
            key=self._task.key,
            state=self._state,
            name=self._task.name,
            site=self._task.site,
            rows=self._rows,
            token=self._token,
            paths=tuple(self._writers),
            packets=values.get("packets", 0),
            file_bytes=values["file_bytes"],
            problems=values.get("problems", 0),
            error=values.get("error"),
            is_passing=is_passing,
            warnings=tuple(values.get("warnings", ())),
        )

    def clear(self) -> None:
        """Let go what was written so far."""
        for writer in self._writers.values():
            with suppress(OSError):
                writer.close()
        for number in range(len(self._writers)):
            (self._folder / staged_name(number)).unlink(missing_ok=True)
        self._writers.clear()
        self._rows.clear()

    def discard(self) -> None:
        """Leave nothing."""
        self.clear()
        shutil.rmtree(self._folder, ignore_errors=True)


def staged_name(number: int) -> str:
    """The name of an outcome's file, by its place in `paths`, while it is not yet part of the data set."""
    return f"{number}.part"


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
