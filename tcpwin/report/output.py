"""Files that are written whole or not at all: a full disk or Ctrl-C leaves no half of one.

In: a path. Out: an open file; one sentence where it cannot be written. Devices and pipes are never taken away.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from tcpwin.errors import OutputError


@contextmanager
def open_whole(path: str | Path, *, is_binary: bool = False) -> Iterator[IO[Any]]:
    """Open a file to write it; what was written is taken away again where the rest cannot be.

    Raises:
        OutputError: it cannot be opened or written.
    """
    text: dict[str, Any] = {} if is_binary else {"encoding": "utf-8", "errors": "backslashreplace", "newline": ""}
    try:
        with Path(path).open("wb" if is_binary else "w", **text) as file:
            try:
                yield file
                file.flush()
            except BaseException:
                if Path(path).is_file() and not Path(path).is_symlink():
                    Path(path).unlink()
                raise
    except OSError as error:
        if error.filename not in (None, str(path)):
            raise
        raise OutputError(f"{path}: {error.strerror or error}") from None
