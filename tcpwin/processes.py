"""Worker processes of a command, which end with it and are replaced if one of them crashes.

In: functions and their arguments. Out: futures. Neither a signal nor the command's end leaves a worker behind.
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
        is_whole: whether all processes are still alive.
    """

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self.is_whole = True
        self._executor = self._new()

    def _new(self) -> ProcessPoolExecutor:
        # A forked process has the imported modules already; only Linux forks safely.
        context = multiprocessing.get_context("fork" if sys.platform == "linux" else None)
        executor = ProcessPoolExecutor(self._processes, mp_context=context, initializer=_begin)
        with _signals_held():
            # Start all processes with the first call.
            executor.submit(int)
        return executor

    def submit(self, work: Callable[..., T], *given: object) -> Future[T]:
        """Call a function in one of the processes; if they have crashed, the future raises the error."""
        try:
            return self._executor.submit(work, *given)
        except BrokenProcessPool as error:
            broken: Future[T] = Future()
            broken.set_exception(error)
            return broken

    def renew(self) -> None:
        """Replace all processes."""
        self.close()
        self._executor = self._new()
        self.is_whole = True

    def close(self) -> None:
        """Wait for pending calls, then end the processes."""
        self._executor.shutdown(cancel_futures=True)


@contextmanager
def pool(processes: int) -> Iterator[Pool]:
    """Provide processes for the duration of a `with` statement; an exception ends them at once."""
    made = Pool(processes)
    try:
        yield made
    except BaseException:
        # Nobody waits for their results.
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    finally:
        made.close()


def alone(work: Callable[..., T], *given: object) -> T:
    """Call a function in its own process, which shows whether the function causes a crash.

    Raises:
        BrokenProcessPool: the process crashed.
    """
    made = Pool(1)
    try:
        return made.submit(work, *given).result()
    finally:
        made.close()


@contextmanager
def _signals_held() -> Iterator[None]:
    """Block signals while processes start, because a signal would leave those behind that are not yet registered."""
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
    """Let signals from the terminal end the worker at once, and end it with the command, which reports the reason."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # Everything imported so far is permanent, so the garbage collector can skip it.
    gc.freeze()
    command = multiprocessing.parent_process()
    if command is not None:
        threading.Thread(target=_end_with, args=(command.sentinel,), daemon=True).start()


def _end_with(command: int) -> None:
    wait([command])
    os._exit(_EXIT_ORPHANED)
