"""The default number of threads that read a capture."""

from __future__ import annotations

import sys

from tcpwin import _engine
from tcpwin.sources import Source

WORTH_BYTES = 4 << 20
"""One thread reads most of a smaller file before the others have started."""


def cores() -> int:
    """Return the number of processors available to this process, within a container's limits."""
    return _engine.cores()


def threads_for(source: Source) -> int:
    """Return the available cores, or one for a small file and in a process started by another process of tcpwin."""
    is_small = source.size_bytes is not None and source.size_bytes < WORTH_BYTES
    return 1 if is_small or is_beside_others() else cores()


def is_beside_others() -> bool:
    """Whether another process of tcpwin started this one, and possibly others."""
    # Not imported: a process started by multiprocessing has already loaded it.
    multiprocessing = sys.modules.get("multiprocessing.process")
    return multiprocessing is not None and multiprocessing.parent_process() is not None
