"""Parquet files being written in this attempt's private folder, one per table and day.

In: rows, capture by capture. Out: files, and which of them contain a capture's rows.
"""

from __future__ import annotations

import secrets
import shutil
from collections import defaultdict
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tcpwin.errors import OutputError
from tcpwin.fleet.columns import Rows, to_arrow
from tcpwin.fleet.schema import arrow_schema
from tcpwin.fleet.task import Outcome, Performed, Task, digest

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetWriter

STAGING = ".staging"
"""Folder of files being written; hidden, so that readers ignore it."""
MANY_ROWS = 5000
"""Larger tables are compressed strongly; for smaller ones that takes longer than it is worth."""
HELD_ROWS = 50_000
"""Rows of a table in memory at once."""

_Place = tuple[str, str]
"""A table and a day."""


class Staged:
    """The files of a group of tasks.

    Raises:
        OutputError: the data set's folder does not exist or is not writable.
    """

    def __init__(self, tasks: Sequence[Task], folder: Path, also: Sequence[str]) -> None:
        first, states = tasks[0], [task.state(also) for task in tasks]
        is_alone = len(tasks) == 1
        name = first.key if is_alone else digest(task.key for task in tasks)
        self._name = f"site={quote(first.site, safe='')}/{name}-{states[0] if is_alone else digest(states)}.parquet"
        self._is_alone = is_alone
        self._token = secrets.token_hex(8)
        self._folder = folder / STAGING / self._token
        self._own: dict[_Place, list[Rows]] = defaultdict(list)
        self._held: dict[_Place, list[Rows]] = defaultdict(list)
        self._counts: dict[str, int] = defaultdict(int)
        self._paths: dict[str, None] = {}
        self._writers: dict[str, ParquetWriter] = {}
        try:
            self._folder.mkdir()
        except FileNotFoundError:
            raise OutputError(
                f"{folder}: not visible to a worker; the data set's folder must be visible to all"
            ) from None
        except OSError as error:
            raise OutputError(f"{folder}: {error.strerror or error}") from None

    def add(self, table: str, day: str, rows: Rows) -> None:
        """Add rows of the current capture."""
        place = table, day
        self._counts[table] += rows.height
        self._paths[self._path(place)] = None
        self._own[place].append(rows)
        if self._is_alone and sum(each.height for each in self._own[place]) > MANY_ROWS:
            self._write(place, self._own.pop(place))

    def keep(self) -> tuple[dict[str, int], tuple[str, ...]]:
        """Finish the current capture, and return its rows per table and the files that contain them."""
        kept = dict(self._counts), tuple(self._paths)
        for place, parts in self._own.items():
            held = self._held[place]
            held += parts
            if sum(each.height for each in held) > HELD_ROWS:
                self._write(place, self._held.pop(place))
        self._forget()
        return kept

    def drop(self) -> None:
        """Discard the current capture's rows."""
        if self._is_alone:
            self._clear()
        self._forget()

    def finish(self, outcomes: Sequence[Outcome]) -> Performed:
        """Close the files."""
        for place, parts in self._held.items():
            self._write(place, parts)
        try:
            for writer in self._writers.values():
                writer.close()
        except OSError as error:
            raise self._failure(error) from None
        return Performed(self._token, tuple(self._writers), tuple(outcomes))

    def discard(self) -> None:
        """Delete everything."""
        self._clear()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, place: _Place) -> str:
        table, day = place
        return f"{table}/day={day}/{self._name}"

    def _write(self, place: _Place, parts: Sequence[Rows]) -> None:
        path = self._path(place)
        try:
            writer = self._writers.get(path)
            if writer is None:
                file = self._folder / staged_name(len(self._writers))
                rows = sum(each.height for each in parts)
                writer = self._writers[path] = begin_file(file, place[0], is_large=rows > MANY_ROWS)
            writer.write_table(to_arrow(place[0], parts))
        except OSError as error:
            raise self._failure(error) from None

    def _failure(self, error: OSError) -> OutputError:
        return OutputError(f"{self._folder.parent.parent}: {error.strerror or error}")

    def _forget(self) -> None:
        self._own.clear()
        self._counts.clear()
        self._paths.clear()

    def _clear(self) -> None:
        for writer in self._writers.values():
            with suppress(OSError):
                writer.close()
        for number in range(len(self._writers)):
            (self._folder / staged_name(number)).unlink(missing_ok=True)
        self._writers.clear()


def staged_name(number: int) -> str:
    """Return a file's temporary name, from its position in `paths`."""
    return f"{number}.part"


def begin_file(path: Path, table: str, *, is_large: bool) -> ParquetWriter:
    """Begin a file of a table."""
    from pyarrow.parquet import ParquetWriter

    return ParquetWriter(
        path,
        arrow_schema(table),
        compression="zstd" if is_large else "snappy",
        use_dictionary=is_large,
        write_statistics=is_large,
        store_schema=False,
    )


def copy_without(path: Path, to: Path, table: str, keys: Collection[str]) -> None:
    """Copy a table's file without the rows of some captures."""
    import pyarrow
    import pyarrow.compute
    from pyarrow.parquet import ParquetFile

    # Without threads, because this process may fork.
    with ParquetFile(path) as file, begin_file(to, table, is_large=file.metadata.num_rows > MANY_ROWS) as writer:
        for number in range(file.num_row_groups):
            rows = file.read_row_group(number, use_threads=False)
            is_gone: Any = pyarrow.compute.is_in(rows.column("capture"), pyarrow.array(sorted(keys)))
            writer.write_table(rows.filter(pyarrow.compute.invert(is_gone)).cast(arrow_schema(table)))
