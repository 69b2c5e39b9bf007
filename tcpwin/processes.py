"""Processes that work beside a command, end with it, and are replaced where one of them ends.

In: functions and what they are called with. Out: futures. Nobody is left behind: neither by a signal nor by the end of
the command.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait
from typing import TypeVar

T = TypeVar("T")
_EXIT_ORPHANED = 3


class Pool:
    """Processes that can be replaced.

    Attributes:
        is_whole: none of them has ended.
    """

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self.is_whole = True
        self._executor = self._new()

    def _new(self) -> ProcessPoolExecutor:
        # A fork has what is imported already; elsewhere it is not safe, or not there.
        context = multiprocessing.get_context("fork" if sys.platform == "linux" else None)
        executor = ProcessPoolExecutor(self._processes, mp_context=context, initializer=_begin)
        with _signals_held():
            # All processes begin with the first work.
            executor.submit(int)
        return executor

    def submit(self, work: Callable[..., T], *given: object) -> Future[T]:
        """Call a function in one of them; where they ended, the future says so."""
        try:
            return self._executor.submit(work, *given)
        except BrokenProcessPool as error:
            broken: Future[T] = Future()
            broken.set_exception(error)
            return broken

    def renew(self) -> None:
        """Begin with new processes."""
        self.close()
        self._executor = self._new()
        self.is_whole = True

    def close(self) -> None:
        """Wait for what they do, and let them go."""
        self._executor.shutdown(cancel_futures=True)


@contextmanager
def pool(processes: int) -> Iterator[Pool]:
    """Processes as long as a `with` statement lasts; an error ends them at once."""
    made = Pool(processes)
    try:
        yield made
    except BaseException:
        # Nobody waits for what they do any more.
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    finally:
        made.close()


def alone(work: Callable[..., T], *given: object) -> T:
    """Call a function in a process for it alone, which shows whether it is why a process ended.

    Raises:
        BrokenProcessPool: it is.
    """
    made = Pool(1)
    try:
        return made.submit(work, *given).result()
    finally:
        made.close()


@contextmanager
def _signals_held() -> Iterator[None]:
    """No signal ends the command while it starts processes: it would leave those that it does not know yet."""
    came: list[int] = []
    held = {
        each: signal.signal(each, lambda number, _: came.append(number)) for each in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for each, handler in held.items():
            signal.signal(each, signal.SIG_DFL if handler is None else handler)
    for number in came:
        signal.raise_signal(number)


def _begin() -> None:
    """End at once on a signal from the terminal, and with the command, which reports why."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # Everything imported so far lives until the end: the garbage collector need not scan it.
    gc.freeze()
    command = multiprocessing.parent_process()
    if command is not None:
        threading.Thread(target=_end_with, args=(command.sentinel,), daemon=True).start()


def _end_with(command: int) -> None:
    wait([command])
    os._exit(_EXIT_ORPHANED)
