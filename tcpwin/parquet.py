"""Parquet files written some rows at a time, so that no more than that is in memory.

In: data frames of polars, one after the other, all of one schema. Out: a file of many row groups.
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
"""Rows that are compressed together."""

_WAITING = 2
"""Frames between who makes them and who writes them."""
_LOOK_S = 0.1
"""So often whoever waits looks whether the other is still there."""


@contextmanager
def parquet_writer(
    schema: polars.Schema, target: str | Path | IO[bytes]
) -> Iterator[Callable[[polars.DataFrame], None]]:
    """Write a file while the body runs: what it gets writes a data frame of that schema.

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
    """There is no more to write, and what is written is not whole."""


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
        """Hand over a frame, or None behind the last one."""
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
    """Return the system's error for polars' own: it reports a full disk as a ComputeError."""
    code = re.search(r"\(os error (\d{1,4})\)", str(error))
    return error if code is None else OSError(int(code[1]), os.strerror(int(code[1])))
