"""Several captures on one command line, analysed in processes side by side and reported in the order given.

In: the names. Out: for each file, the command's answer or why it could not be read. A broken file, or one whose process
ends, does not affect the others.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import click

from tcpwin.cli.io import complain
from tcpwin.cli.program import EXIT_UNREADABLE
from tcpwin.errors import FilterError, TcpwinError
from tcpwin.sources import public_name
from tcpwin.units import name_text

if TYPE_CHECKING:
    from concurrent.futures import Future

    from tcpwin.cli.io import Output
    from tcpwin.cli.options import CaptureOptions
    from tcpwin.hosts import Member
    from tcpwin.limits import Analysis

T = TypeVar("T")
Answer = Callable[["Analysis", str, Callable[[str], None]], T]
SCHEMA = "tcpwin/captures/1"
AHEAD = 4
"""Files queued for each process; finished answers wait for their turn."""
NEXT_PIECE_NS = 10_000_000_000
"""Maximum gap between two pieces of one capture."""


@dataclass(frozen=True, slots=True)
class Answered(Generic[T]):
    """A command's answer for one capture.

    Attributes:
        file: its path, as named or as found in a folder.
        answer: None if the capture could not be read.
        failure: why it could not be read.
        is_refused: the filter is invalid.
        warnings: lines for stderr.
    """

    file: str
    answer: T | None
    failure: str | None
    warnings: tuple[str, ...]
    is_refused: bool = False


def merge_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--merge` to a command."""
    return click.option(
        "--merge", is_flag=True, help="Read several files as one capture cut in pieces, merged by time."
    )(command)


def separate(captures: tuple[str, ...], options: CaptureOptions, *, merge: bool) -> list[str]:
    """Return the captures to read separately; none for a single capture, or for pieces of one.

    A folder with several captures and no snapshot stands for its captures and for the bundles in it.

    Raises:
        UsageError: an option that is for a single capture.
    """
    if merge:
        return []
    files = [file for each in captures for file in _within(each, options.member)]
    if len(files) == 1 and files[0] == captures[0]:
        return []
    for value, option in ((options.snapshots, "--with"), (options.member, "--capture")):
        if value:
            raise click.UsageError(
                f"{option} goes with one capture; {len(files)} are named (--merge reads them as one)"
            )
    if "-" in files:
        raise click.UsageError("standard input (-) cannot be read together with files")
    return files


def _within(path: str, member: str | None) -> list[str]:
    """Return the captures of a folder that is not a bundle, in order of their names; otherwise the path."""
    if member is not None or path == "-" or not Path(path).is_dir():
        return [path]
    from tcpwin.hosts import Bundle

    try:
        with Bundle.open(path) as bundle:
            captures = [each.name for each in bundle.members if each.kind == "capture" or _is_called_one(each)]
            bundles = [each.name for each in bundle.members if _holds_capture(Path(path, each.name))]
            if bundle.snapshots or (len(captures) < 2 and not bundles):
                return [path]
            captures += bundles
    except TcpwinError:
        # Reading it gives the reason, and does not affect the others.
        return [path]
    return [str(Path(path, name)) for name in sorted(captures)]


def _holds_capture(path: Path) -> bool:
    """Return true for an archive with a capture, and for one that cannot be read: it is reported, not skipped."""
    from tcpwin.hosts import Bundle, is_bundle

    if not is_bundle(path):
        return False
    try:
        with Bundle.open(str(path)) as bundle:
            return bool(bundle.captures)
    except TcpwinError:
        return True


def _is_called_one(member: Member) -> bool:
    """Return true for a file that is named like a capture but is not one: it is reported, not skipped."""
    return member.kind == "unknown" and re.search(r"\.p?cap(ng)?\d*(\.(gz|zst|lz4))?$", member.name) is not None


def answer_each(files: Sequence[str], answer: Answer[T], options: CaptureOptions) -> Iterator[Answered[T]]:
    """Analyse each capture in processes side by side and yield a command's answers, in the order given.

    Args:
        answer: gets an analysis, the name of its file and a function that takes warnings; other processes must be able
            to import it.

    Raises:
        FilterError: the filter is invalid: it is reported once, not for each capture.
    """
    from concurrent.futures.process import BrokenProcessPool

    from tcpwin.analysis import cores
    from tcpwin.processes import pool

    # The processes share the cores: each reads with one thread.
    work = _Work(answer, replace(options, threads=1))
    processes = min(options.threads or cores(), len(files))
    # Import before forking, so that no process has to.
    for stage in ("tcpwin.hosts", "tcpwin.limits", "tcpwin.render"):
        import_module(stage)
    with _shown(len(files)) as tick, pool(processes) as readers:
        waiting: list[tuple[str, Future[Answered[T]]]] = []
        left = list(reversed(files))
        while left or waiting:
            while left and len(waiting) < AHEAD * processes and readers.is_whole:
                file = left.pop()
                waiting.append((file, readers.submit(work, file)))
            if not waiting:
                # The pool is broken, as one of the processes ended.
                readers.renew()
                continue
            file, future = waiting.pop(0)
            try:
                answered = future.result()
            except BrokenProcessPool:
                readers.is_whole = False
                answered = _alone(work, file)
            tick()
            if answered.is_refused and file == files[0]:
                raise FilterError(answered.failure)
            yield answered


@dataclass(frozen=True)
class _Work(Generic[T]):
    """The work of a process on a file."""

    answer: Answer[T]
    options: CaptureOptions

    def __call__(self, file: str) -> Answered[T]:
        warnings: list[str] = []
        found, failure, is_refused = None, None, False

        def warn(text: str) -> None:
            warnings.append(name_text(text))

        try:
            found = self.answer(self.options.analyze((file,), warn=warn, shows=False, may_be_empty=True), file, warn)
        except (TcpwinError, OSError) as error:
            failure, is_refused = str(error), isinstance(error, FilterError)
        except click.UsageError as error:
            failure = error.format_message()
        except MemoryError:
            failure = f"{public_name(file)}: there is not enough memory to read it"
        return Answered(public_name(file), found, failure, tuple(warnings), is_refused)


def _alone(work: _Work[T], file: str) -> Answered[T]:
    """Read a file again in a process of its own, because the process that was reading it ended."""
    from concurrent.futures.process import BrokenProcessPool

    from tcpwin.processes import alone

    try:
        return alone(work, file)
    except BrokenProcessPool:
        return Answered(
            public_name(file),
            None,
            f"{public_name(file)}: the process that read it ended; there may not be enough memory",
            (),
        )


@contextmanager
def _shown(count: int) -> Iterator[Callable[[], object]]:
    """Show a bar on a terminal's stderr."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    with click.progressbar(length=count, label="reading captures", file=sys.stderr, show_pos=True) as bar:
        yield lambda: bar.update(1)


def warn_of(answered: Answered[Any]) -> None:
    """Report a capture's warnings on stderr, under its name."""
    for line in answered.warnings:
        named = line if answered.file in line else f"{answered.file}: {line}"
        complain(named)
    if answered.failure is not None:
        complain(answered.failure if answered.file in answered.failure else f"{answered.file}: {answered.failure}")


@contextmanager
def captures_document(output: Output) -> Iterator[Callable[[Answered[Any], Path | None], None]]:
    """Write one JSON document of several captures: call the yielded function to add one and delete its own document."""
    import json
    import shutil

    with output.opened() as out:
        out.write(f'{{"schema": "{SCHEMA}", "captures": [')
        before = ""

        def add(answered: Answered[Any], document: Path | None) -> None:
            nonlocal before
            head = {"file": answered.file, "failure": answered.failure, "warnings": answered.warnings}
            out.write(f'{before}{json.dumps(head)[:-1]}, "document": ')
            before = ",\n"
            if document is None:
                out.write("null")
            else:
                with document.open(encoding="utf-8", errors="surrogateescape") as file:
                    shutil.copyfileobj(file, out)
                document.unlink()
            out.write("}")

        yield add
        out.write("]}\n")


def exit_status(is_problem: bool, failures: int) -> int:
    """Return the status of all captures: an unreadable one takes precedence over a problem in another."""
    return EXIT_UNREADABLE if failures else int(is_problem)


@dataclass(frozen=True, slots=True)
class Piece:
    """Name and times of a capture, which reveal whether several are pieces of one."""

    file: str
    first_ns: int
    last_ns: int
    begins_within: bool

    @classmethod
    def of(cls, analysis: Analysis, file: str) -> Piece:
        """Return the times of a capture."""
        capture = analysis.capture
        first_ns, last_ns = capture.first_time_ns or 0, capture.last_time_ns or 0
        return cls(file, first_ns, last_ns, capture.connections_without_syn > 0)


def hint_of_pieces(pieces: Sequence[Piece]) -> None:
    """Suggest --merge for files that look like pieces of one capture."""
    ordered = sorted(pieces, key=lambda piece: piece.first_ns)
    names = {re.sub(r"\d+", "#", Path(piece.file).name) for piece in ordered}
    follow = all(
        0 <= after.first_ns - before.last_ns <= NEXT_PIECE_NS and after.begins_within
        for before, after in pairwise(ordered)
    )
    if len(ordered) > 1 and len(names) == 1 and follow:
        complain("these look like pieces of one capture: --merge joins connections across them")
