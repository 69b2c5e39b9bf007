"""Small captures are measured in groups: what a task and its files cost is shared.

In: tasks, and how many places there are to do them. Out: groups, each of captures of one site, or of one capture alone.
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
    """The tasks in their order, small ones of a site together."""
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
