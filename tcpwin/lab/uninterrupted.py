"""What must come to its end once it began, as setting back what was changed on a host.

In: a block. Out: nothing. Signals that end a process wait meanwhile, and act afterwards. It ends no process itself.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""A user's Ctrl-C, a service manager, a terminal that was closed."""


@contextmanager
def undisturbed() -> Iterator[None]:
    """Hold these signals back until the block is done; the first that came acts then."""
    if threading.current_thread() is not threading.main_thread():
        # Handlers run in the main thread, and can be set there only.
        yield
        return
    came: list[int] = []
    before = {each: signal.getsignal(each) for each in ENDS}
    held = [each for each, handler in before.items() if handler not in (signal.SIG_IGN, None)]
    for each in held:
        signal.signal(each, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for each in held:
            signal.signal(each, before[each])
        if came:
            signal.raise_signal(came[0])
