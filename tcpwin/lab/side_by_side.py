"""Parallel runs.

In: a function, its items, the number of jobs. Out: the results in order. If one fails, or the user interrupts, no more
are started, and active ones finish first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def side_by_side(act: Callable[[T], R], items: Iterable[T], jobs: int) -> list[R]:
    """Call `act` with each item, sequentially in this thread for a single job."""
    if jobs == 1:
        return [act(item) for item in items]
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(act, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
