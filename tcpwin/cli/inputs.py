"""Captures named on the command line, and progress while they are read."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcpwin.errors import SourceError
from tcpwin.sources import FileSource, Source, of_paths

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

LAST_CONNECTION = (1 << 32) - 1
"""The engine's numbers of connections have 32 bits."""

PROGRESS_FROM_BYTES = 64 << 20
"""A smaller file is read before a bar could be seen."""


def open_captures(captures: tuple[str, ...], *, keep: bool = False) -> Source:
    """A source of the named files; ``-`` alone is standard input, which with `keep` can be read again."""
    if "-" in captures:
        if len(captures) > 1:
            raise click.UsageError("standard input (-) cannot be read together with files")
        if sys.stdin.isatty():
            raise click.UsageError("standard input is a terminal: pipe a capture into it")
        return FileSource(sys.stdin.buffer, name="standard input", keep=keep)
    return of_paths(captures)


def check_connection(connection: int | None, count: int) -> None:
    """Refuse a number that no connection has."""
    if connection is not None and connection >= count:
        raise SourceError(f"no connection {connection}: the capture has {count}")


def spare_captures(captures: tuple[str, ...], out: str | None) -> None:
    """Refuse to write over a capture that is read.

    Raises:
        UsageError: the output is one of the captures.
    """
    if out is not None and Path(out).exists():
        for capture in captures:
            is_input = (
                _is_standard_input(out) if capture == "-" else Path(capture).exists() and Path(out).samefile(capture)
            )
            if is_input:
                raise click.UsageError(f"{out} is the capture itself: name another file with -o OUT")


def _is_standard_input(path: str) -> bool:
    try:
        return os.path.samestat(Path(path).stat(), os.fstat(sys.stdin.fileno()))
    except (OSError, ValueError):
        return False


class ConnectionNumber(click.IntRange):
    """Any number from 0; one beyond the engine's is as absent as its last."""

    def __init__(self) -> None:
        super().__init__(min=0)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        return min(int(super().convert(value, param, ctx)), LAST_CONNECTION)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from tcpwin.cli.completion import connections

        return connections(ctx, param, incomplete)


@contextmanager
def progress(source: Source | None) -> Iterator[Callable[[int], object] | None]:
    """A bar on a terminal's stderr while a long file is read, else nothing."""
    size_bytes = None if source is None else source.size_bytes
    if source is None or not sys.stderr.isatty() or size_bytes is None or size_bytes < PROGRESS_FROM_BYTES:
        yield None
        return
    with click.progressbar(length=size_bytes, label=f"reading {source.name}", file=sys.stderr) as bar:
        yield lambda bytes_read: bar.update(bytes_read - bar.pos)
