"""Write Parquet files a few rows at a time, to bound the memory.

In: consecutive polars data frames with the same schema. Out: a file with many row groups.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, Full, Queue
from threading import Thread
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import polars

ROW_GROUP = 1 << 16
"""Rows of one row group."""

_WAITING = 2
"""Maximum number of frames that wait to be written."""
_LOOK_S = 0.1
"""Interval at which a waiting thread checks that the other one is still alive."""


@contextmanager
def parquet_writer(
    schema: polars.Schema, target: str | Path | IO[bytes]
) -> Iterator[Callable[[polars.DataFrame], None]]:
    """Create a file and yield a function that appends a data frame of this schema.

    A thread compresses and writes, so that the body can be interrupted.

    Raises:
        OSError: the target cannot be written.
    """
    writing = _Writing(schema, target)
    try:
        yield writing.put
    except BaseException:
        writing.stop()
        raise
    writing.finish()


class _StoppedError(Exception):
    """The file was closed before it was complete."""


class _Writing:
    """A file that is being written."""

    def __init__(self, schema: polars.Schema, target: str | Path | IO[bytes]) -> None:
        self._schema = schema
        self._target = target
        self._queue: Queue[polars.DataFrame | None] = Queue(_WAITING)
        self._failure: BaseException | None = None
        self._is_stopped = False
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def put(self, frame: polars.DataFrame | None) -> None:
        """Queue a frame, or None to end the file."""
        while self._thread.is_alive():
            try:
                self._queue.put(frame, timeout=_LOOK_S)
            except Full:
                continue
            return
        if self._failure is not None:
            raise self._failure

    def finish(self) -> None:
        self.put(None)
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        self._is_stopped = True
        self._thread.join()

    def _run(self) -> None:
        import polars
        from polars.io.plugins import register_io_source

        try:
            # Level 1 of zstd is twice as fast as the default, for a file a few per cent larger.
            register_io_source(self._frames, schema=self._schema).sink_parquet(
                self._target, engine="streaming", compression="zstd", compression_level=1, row_group_size=ROW_GROUP
            )
        except polars.exceptions.PolarsError as error:
            self._failure = _system_error(error)
        except BaseException as error:  # noqa: BLE001 (raised where frames are handed over)
            self._failure = error

    def _frames(self, *_: object) -> Iterator[polars.DataFrame]:
        while True:
            try:
                frame = self._queue.get(timeout=_LOOK_S)
            except Empty:
                if self._is_stopped:
                    raise _StoppedError from None
                continue
            if frame is None:
                return
            yield frame


def _system_error(error: Exception) -> Exception:
    """Return the operating system's error, because polars reports a full disk as a ComputeError."""
    code = re.search(r"\(os error (\d{1,4})\)", str(error))
    return error if code is None else OSError(int(code[1]), os.strerror(int(code[1])))
