"""The processes that analyse for a service, held and let go: what happens meanwhile does not depend on a race."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from web.crafted import many_connections

CONNECTIONS = 20_000
LITTLE_BYTES = 50_000
"""A quarter of what the results of so many take."""


@contextmanager
def held_analysis(service_pid: int, data: Path, upload: Callable[[bytes], str]) -> Iterator[tuple[str, list[int]]]:
    """Upload a capture and stop its worker before its results are in place; it goes on after the block.

    Args:
        service_pid: the process that the service runs in.
        data: its folder.
        upload: sends a capture and returns its id once an analysis is wanted.

    Yields:
        The capture's id, and the workers that are stopped: the one that works on it is among them.
    """
    while True:
        id = upload(many_connections(CONNECTIONS))
        if pids := _stop_workers(service_pid, data / "results" / id):
            break
    try:
        yield id, pids
    finally:
        let_go(pids)


def stop_all(service_pid: int) -> list[int]:
    """Stop all workers that there are at this moment."""
    pids = workers(service_pid)
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    for pid in pids:
        while _stat(pid)[0] not in "TZX":
            os.sched_yield()
    return pids


def let_go(pids: list[int]) -> None:
    """Continue workers, if they still are some."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def is_there(pid: int) -> bool:
    """Whether a process has not ended."""
    return _stat(pid)[0] not in "ZX"


def _stop_workers(service_pid: int, results: Path) -> list[int]:
    """Stop all workers while they read the capture of those results; none if that was over before."""
    new = results.with_name(f"{results.name}.new")
    while not results.exists():
        # Its worker made this folder.
        if not new.exists():
            time.sleep(0.001)
            continue
        pids = stop_all(service_pid)
        # An index that is begun can be thrown away, which would give a full disk room for the results.
        if new.exists() and sum(each.stat().st_size for each in new.iterdir()) < LITTLE_BYTES:
            return pids
        let_go(pids)
    return []


def workers(service_pid: int) -> list[int]:
    """The children of the process that forks workers, a child of the service."""
    parents = _parents()
    found = forkers(service_pid)
    return [pid for pid, parent in parents.items() if parent in found]


def forkers(service_pid: int) -> list[int]:
    """The process of a service that forks its workers, if it has one."""
    return [pid for pid, parent in _parents().items() if parent == service_pid and b"forkserver" in command(pid)]


def descendants(pid: int) -> list[int]:
    """A process's children, theirs, and so on."""
    parents, found = _parents(), [pid]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found[1:]


def _parents() -> dict[int, int]:
    return {int(folder.name): _stat(int(folder.name))[1] for folder in Path("/proc").glob("[0-9]*")}


def command(pid: int) -> bytes:
    """Arguments of a process; none of one that is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _stat(pid: int) -> tuple[str, int]:
    """State and parent of a process (proc(5)); X and 0 of one that is gone."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "X", 0
    return words[0], int(words[1])
