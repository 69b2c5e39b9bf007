"""Grouping: small captures share a task and files, large ones get several threads.

In: tasks, and the number of worker slots. Out: groups, each with captures of one site or a single capture, and the
threads for each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tcpwin.fleet.task import Task

MOST = 64
"""Maximum captures per group: that many are repeated if a worker is lost."""
EACH = 4
"""Minimum groups per slot, so that no slot waits long for the last one."""


def grouped(tasks: Sequence[Task], places: int) -> Iterator[tuple[Task, ...]]:
    """Return the tasks, large ones first so that none starts at the end, and small ones grouped by site."""
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
    """Return the threads for each large task; they share its connections, and none is split."""
    return max(places // max(sum(task.is_large for task in tasks), 1), 1)
