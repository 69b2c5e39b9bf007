"""Small captures are measured in groups, whose task and files they share; large ones by several threads.

In: tasks, and how many places there are to do them. Out: groups, each of captures of one site, or of one capture alone;
and how many threads each is worth.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tcpwin.fleet.task import Task

MOST = 64
"""Captures of a group: so many are measured again where a worker is lost."""
EACH = 4
"""Groups for each place at least, so that no place waits long for the last one."""


def grouped(tasks: Sequence[Task], places: int) -> Iterator[tuple[Task, ...]]:
    """The tasks, the large ones first, that none is begun when all else is done; small ones of a site together."""
    tasks = sorted(tasks, key=lambda task: not task.is_large)
    most = min(MOST, sum(task.is_small for task in tasks) // (EACH * places))
    waiting: dict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        if not task.is_small or most < 2:
            yield (task,)
            continue
        group = waiting[task.site]
        group.append(task)
        if len(group) == most:
            yield tuple(waiting.pop(task.site))
    yield from map(tuple, waiting.values())


def threads_of(tasks: Sequence[Task], places: int) -> int:
    """How many threads each large one of the tasks is worth: its connections are shared among them, none is split."""
    return max(places // max(sum(task.is_large for task in tasks), 1), 1)
