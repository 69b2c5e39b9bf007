"""Run tasks on the workers of a Dask cluster.

In: tasks, and the address of a scheduler. Out: their outcomes as they arrive. If a worker ends or is disconnected, the
others take over its tasks. Each attempt writes to a separate folder, and only one is used, so nothing is lost or
duplicated.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from itertools import chain
from typing import Any

from tcpwin.errors import SourceError
from tcpwin.fleet.groups import grouped
from tcpwin.fleet.local import AHEAD, ENDED
from tcpwin.fleet.perform import perform
from tcpwin.fleet.task import Performed, Task

ANSWER_S = 30
"""Timeout for the scheduler's answer, and for its first worker."""


def perform_on(scheduler: str, tasks: Sequence[Task], folder: str, also: Sequence[str]) -> Iterator[Performed]:
    """Measure captures on a cluster whose workers see the captures and the data set's folder by the same paths.

    Raises:
        SourceError: no scheduler answers, it has no workers, or it disappeared.
        OutputError: the data set cannot be written.
    """
    from distributed import KilledWorker, as_completed

    with _connected(scheduler) as client:
        left: Iterator[Sequence[Task]] = grouped(tasks, _places(client))
        waiting: dict[Any, Sequence[Task]] = {}
        done = as_completed(loop=client.loop)
        while True:
            while len(waiting) < AHEAD * _places(client) and (group := next(left, None)) is not None:
                future = client.submit(perform, group, folder, also, pure=False)
                waiting[future] = group
                done.add(future)
            if not waiting:
                return
            future = next(done)
            group = waiting.pop(future)
            try:
                performed: Performed = future.result()
            except KilledWorker:
                # The group killed several workers in succession.
                if len(group) > 1:
                    left = chain(((task,) for task in group), left)
                    continue
                performed = perform(group, folder, also, ENDED)
            except CancelledError:
                raise SourceError(
                    f"{scheduler}: the scheduler disappeared; run the same command again to resume"
                ) from None
            yield performed


def _places(client: Any) -> int:
    threads: dict[str, int] = client.nthreads()
    return max(sum(threads.values()), 1)


@contextmanager
def _connected(scheduler: str) -> Iterator[Any]:
    from distributed import Client

    # It logs every worker that joins or leaves; relevant errors are raised.
    for name in [each for each in logging.root.manager.loggerDict if each.partition(".")[0] == "distributed"]:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client = Client(scheduler, timeout=ANSWER_S, set_as_default=False, name="tcpwin-fleet")
    except (OSError, ValueError, TimeoutError) as error:
        raise SourceError(f"{scheduler}: no Dask scheduler answers there: {_first_line(error)}") from None
    try:
        try:
            client.wait_for_workers(1, timeout=ANSWER_S)
        except TimeoutError:
            raise SourceError(f"{scheduler}: the scheduler has no workers") from None
        yield client
    finally:
        client.close()


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
