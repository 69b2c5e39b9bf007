"""This host's sockets, counters and settings, recorded continuously along with the packets; only recent data is kept.

In: a folder. Out: files as written by `tcpwin snap`; the newest go into bundles.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from tcpwin.errors import OutputError, TcpwinError
from tcpwin.hosts.collect import record

_MOST_BYTES = 8 << 20
_FILES = 2
_NAME = "snap.jsonl"


@contextmanager
def sampling(folder: Path, every_ns: int, tell: Callable[[str], None]) -> Iterator[Callable[[], Sequence[Path]]]:
    """Record in a separate thread; yield a function that returns the files.

    Raises:
        OutputError: the folder cannot be written.
    """
    try:
        own = Path(tempfile.mkdtemp(prefix=".samples-", suffix=".part", dir=folder))
    except OSError as error:
        raise OutputError(f"{folder}: {error.strerror or error}") from None
    ended = Event()

    def run() -> None:
        try:
            record(own / _NAME, every_ns=every_ns, max_bytes=_MOST_BYTES, keep=_FILES, wait=ended.wait)
        except TcpwinError as error:
            tell(f"sockets are not recorded: {error}")

    thread = Thread(target=run, daemon=True)
    thread.start()
    try:
        yield lambda: sorted(own.glob(f"{_NAME}*"))
    finally:
        ended.set()
        thread.join()
        shutil.rmtree(own, ignore_errors=True)
