"""Run tasks in processes on this machine.

In: tasks. Out: their outcomes as they arrive. If a process dies, each task it had is repeated in a separate process,
which shows whether the task is the cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from importlib import import_module

from tcpwin.fleet.groups import grouped, threads_of
from tcpwin.fleet.perform import perform
from tcpwin.fleet.task import Performed, Task
from tcpwin.processes import Pool, alone, pool

AHEAD = 4
"""Groups of tasks assigned per process at a time."""
ENDED = "the process that read it ended; there may not be enough memory"


def perform_here(tasks: Sequence[Task], folder: str, also: Sequence[str], workers: int) -> Iterator[Performed]:
    """Measure captures in a number of processes.

    Raises:
        OutputError: the data set cannot be written.
    """
    # Fork after importing what each of them needs.
    for module in ("tcpwin.hosts", "tcpwin.limits", "pyarrow.parquet"):
        import_module(module)
    threads = threads_of(tasks, workers)
    workers = min(workers, len(tasks))
    left = grouped(tasks, workers)
    with pool(workers) as readers:
        waiting: dict[Future[Performed], tuple[Task, ...]] = {}
        while True:
            while len(waiting) < AHEAD * workers and (group := next(left, None)) is not None:
                waiting[readers.submit(perform, group, folder, also, None, threads)] = group
            if not waiting:
                return
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            ended: list[Task] = []
            for future in done:
                group = waiting.pop(future)
                try:
                    yield future.result()
                except BrokenProcessPool:
                    ended += group
            if ended:
                yield from _again([*ended, *_drained(waiting)], folder, also, readers)


def _drained(waiting: dict[Future[Performed], tuple[Task, ...]]) -> list[Task]:
    """Return the other tasks of dead processes: all, because they die together."""
    wait(waiting)
    tasks = [task for group in waiting.values() for task in group]
    waiting.clear()
    return tasks


def _again(tasks: Iterable[Task], folder: str, also: Sequence[str], readers: Pool) -> Iterator[Performed]:
    readers.renew()
    for task in tasks:
        try:
            yield alone(perform, (task,), folder, also)
        except BrokenProcessPool:
            yield perform((task,), folder, also, ENDED)
