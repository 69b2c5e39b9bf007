"""Suspend and continue a service's worker processes, so that tests do not depend on a race."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from web.crafted import many_connections

CONNECTIONS = 20_000
LITTLE_BYTES = 50_000
"""A quarter of the size of their results."""


@contextmanager
def held_analysis(service_pid: int, data: Path, upload: Callable[[bytes], str]) -> Iterator[tuple[str, list[int]]]:
    """Upload a capture and suspend its worker before its results are in place; it continues after the block.

    Args:
        service_pid: the process of the service.
        data: its data folder.
        upload: uploads a capture and returns its id once its analysis is queued.

    Yields:
        The capture's id and the suspended workers, including the one that analyses it.
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
    """Suspend all current workers."""
    return suspend(workers(service_pid))


def suspend(pids: list[int]) -> list[int]:
    """Suspend processes, as far as they still exist."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    for pid in pids:
        while _state(pid) not in "TZX":
            os.sched_yield()
    return pids


def let_go(pids: list[int]) -> None:
    """Continue workers that still exist."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def is_there(pid: int) -> bool:
    """Return whether a process is still running."""
    return _state(pid) not in "ZX"


def _stop_workers(service_pid: int, results: Path) -> list[int]:
    """Suspend all workers while one analyses this capture; return none if it had finished before."""
    new = results.with_name(f"{results.name}.new")
    while not results.exists():
        # The worker creates this folder first.
        if not new.exists():
            time.sleep(0.001)
            continue
        pids = stop_all(service_pid)
        # A half-written index can be deleted, which would free space for the results on a full disk.
        if new.exists() and sum(each.stat().st_size for each in new.iterdir()) < LITTLE_BYTES:
            return pids
        let_go(pids)
    return []


def workers(service_pid: int) -> list[int]:
    """Return the children of the service's fork server."""
    return [pid for forker in forkers(service_pid) for pid in children(forker)]


def forkers(service_pid: int) -> list[int]:
    """Return the fork server of a service, if it has one."""
    return [pid for pid in children(service_pid) if b"forkserver" in command(pid)]


def descendants(pid: int) -> list[int]:
    """Return a process's children, their children, and so on."""
    found = [pid]
    for each in found:
        found += children(each)
    return found[1:]


def children(pid: int) -> list[int]:
    """Return the children started by the threads of a process (proc(5))."""
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found


def command(pid: int) -> bytes:
    """Return the command line of a process; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _state(pid: int) -> str:
    """Return the state of a process (proc(5)); X if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"
