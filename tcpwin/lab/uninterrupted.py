"""What must come to its end once it began, as setting back what was changed on a host.

In: a block, and the parts of it that may be left. Out: nothing. Signals that end a process wait but in those parts, and
act afterwards. It ends no process itself.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""A user's Ctrl-C, a service manager, a terminal that was closed."""


class Ended(KeyboardInterrupt):
    """A signal came: on its way out of the block that holds signals back, where the signal itself acts."""


class Signals:
    """The signals that end a process, while a block holds them back."""

    def __init__(self) -> None:
        self.came: int | None = None
        """The first that came."""
        self._may_leave = False

    def take(self, number: int, _: object) -> None:
        """Note a signal, and leave the part that may be left; whatever comes after the first disturbs no longer."""
        if self.came is None:
            self.came = number
        self._leave()

    @contextmanager
    def may_leave(self) -> Iterator[None]:
        """A part that a signal ends at once, also one that came before. What cleans up belongs around it, not into it.

        Raises:
            Ended: a signal came.
        """
        self._may_leave = True
        try:
            # One may have come before the line above: it would wait for the whole part.
            if self.came is not None:
                self._leave()
            yield
        finally:
            self._may_leave = False

    def _leave(self) -> None:
        if self._may_leave:
            self._may_leave = False
            raise Ended


@contextmanager
def signals_held() -> Iterator[Signals]:
    """Hold these signals back until the block is done, but for the parts that may be left; the first acts then.

    Blocks may stand in each other: the inner one's signal acts when the outer one is done.
    """
    signals = Signals()
    if threading.current_thread() is not threading.main_thread():
        # Handlers run in the main thread, and can be set there only.
        yield signals
        return
    before = {each: signal.getsignal(each) for each in ENDS}
    held = [each for each, handler in before.items() if handler not in (signal.SIG_IGN, None)]
    try:
        for each in held:
            signal.signal(each, signals.take)
        yield signals
    finally:
        for each in held:
            signal.signal(each, before[each])
        if signals.came is not None:
            signal.raise_signal(signals.came)
