"""Several runs at once.

In: what to do, with what, how many at once. Out: the results in order. Where one fails, or the user ends it, no more
are begun, and those under way come to their end first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def side_by_side(act: Callable[[T], R], items: Iterable[T], jobs: int) -> list[R]:
    """Call `act` with each item; one after the other in this thread where one job is enough."""
    if jobs == 1:
        return [act(item) for item in items]
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(act, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
