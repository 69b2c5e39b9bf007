"""The question behind an analysis, so that unpickling can repeat it from the same files or bytes.

In: the arguments of `tcpwin.analyze`. Out: the question, if another process can ask it again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcpwin.errors import SourceError


@dataclass(frozen=True, slots=True)
class Question:
    """A source, snapshots and options, with absolute file paths.

    Attributes:
        sizes: file sizes in bytes after reading.
    """

    source: Any
    snapshots: list[Any]
    options: Mapping[str, Any]
    sizes: tuple[tuple[str, int], ...]

    def check(self) -> None:
        """Check that the files still match those that were read.

        Raises:
            SourceError: a file is missing or its size has changed.
        """
        for path, size in self.sizes:
            try:
                now = Path(path).stat().st_size
            except OSError as error:
                raise SourceError(f"{path}: {error.strerror or error}") from None
            if now != size:
                raise SourceError(f"{path}: changed since it was analysed")


def question_of(source: Any, snapshots: Sequence[Any], options: Mapping[str, Any]) -> Question | None:
    """Return the question if its sources (paths, addresses, bytes or several of them) can be read again, else None."""
    files: list[Path] = []

    def whole(given: Any) -> Any:
        if isinstance(given, bytes):
            return given
        if isinstance(given, str | os.PathLike):
            text = os.fspath(given)
            if isinstance(text, str) and "://" in text:
                return text
            path = Path(os.fsdecode(text)).absolute()
            if not (path.is_file() or path.is_dir()):
                raise _OnceError
            if path.is_file():
                files.append(path)
            return str(path)
        if isinstance(given, list | tuple):
            return [whole(each) for each in given]
        raise _OnceError

    def beside(given: Any) -> Any:
        if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str):
            return (given[0], whole(given[1]))
        return whole(given)

    try:
        found, with_it = whole(source), [beside(each) for each in snapshots]
        sizes = tuple((str(path), path.stat().st_size) for path in files)
    except (_OnceError, OSError):
        return None
    return Question(found, with_it, options, sizes)


class _OnceError(Exception):
    """A source that can be read only once."""
