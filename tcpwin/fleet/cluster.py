"""Tasks done by the workers of a Dask cluster.

In: tasks, and the address of a scheduler. Out: their outcomes, as they come. A worker that ends or is cut off loses its
tasks to the others. Each attempt writes to a folder of its own, and one alone is taken: nothing is lost, nothing twice.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

from tcpwin.errors import SourceError
from tcpwin.fleet.local import AHEAD, ENDED
from tcpwin.fleet.perform import perform
from tcpwin.fleet.task import Outcome, Task

ANSWER_S = 30
"""So long a scheduler may take to answer, and its first worker to come."""


def perform_on(scheduler: str, tasks: Iterable[Task], folder: str, also: Sequence[str]) -> Iterator[Outcome]:
    """Measure captures on a cluster whose workers see the captures and the data set's folder by the same paths.

    Raises:
        SourceError: no scheduler answers, it has no workers, or it went away.
        OutputError: the data set cannot be written.
    """
    from distributed import KilledWorker, as_completed

    left = iter(tasks)
    with _connected(scheduler) as client:
        waiting: dict[Any, Task] = {}
        done = as_completed(loop=client.loop)
        while True:
            places = AHEAD * max(sum(client.nthreads().values()), 1)
            while len(waiting) < places and (task := next(left, None)) is not None:
                future = client.submit(perform, task, folder, also, pure=False)
                waiting[future] = task
                done.add(future)
            if not waiting:
                return
            future = next(done)
            task = waiting.pop(future)
            try:
                outcome: Outcome = future.result()
            except KilledWorker:
                # Several workers ended over it, one after the other.
                outcome = perform(task, folder, also, ENDED)
            except CancelledError:
                raise SourceError(f"{scheduler}: the scheduler went away; the same command goes on from here") from None
            yield outcome


@contextmanager
def _connected(scheduler: str) -> Iterator[Any]:
    from distributed import Client

    # It tells of every worker that comes and goes; what matters here is raised.
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
