"""Blocks that must finish once started, such as undoing changes on a host.

In: a block, and its interruptible parts. Out: nothing. Terminating signals are deferred except in those parts, and act
afterwards. It ends no process itself.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, a service manager, a closed terminal."""


class Ended(KeyboardInterrupt):
    """Leaves the block that defers signals, because one has arrived; the signal then acts."""


class Signals:
    """Terminating signals while a block defers them."""

    def __init__(self) -> None:
        self.came: int | None = None
        """The first signal that arrived."""
        self._may_leave = False

    def take(self, number: int, _: object) -> None:
        """Note a signal and leave the interruptible part; later signals are ignored."""
        if self.came is None:
            self.came = number
        self._leave()

    @contextmanager
    def may_leave(self) -> Iterator[None]:
        """An interruptible part, which an earlier signal also ends. Put clean-up around it, not into it.

        Raises:
            Ended: a signal arrived.
        """
        self._may_leave = True
        try:
            # A signal may have arrived before the line above; it would otherwise wait for the whole part.
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
    """Defer these signals until the block is done, except in interruptible parts; then the first acts.

    Blocks may be nested: the inner one's signal acts when the outer one is done.
    """
    signals = Signals()
    if threading.current_thread() is not threading.main_thread():
        # Handlers run in the main thread and can only be set there.
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
