"""How many threads read a capture where nobody says."""

from __future__ import annotations

import sys

from tcpwin import _engine
from tcpwin.sources import Source

WORTH_BYTES = 4 << 20
"""One thread reads most of a smaller file before others have started."""


def cores() -> int:
    """Processors that this process may use, with the limits of a container."""
    return _engine.cores()


def threads_for(source: Source) -> int:
    """As many as the cores available, where that helps: one for a small file, and in a process that works beside
    others."""
    is_small = source.size_bytes is not None and source.size_bytes < WORTH_BYTES
    return 1 if is_small or is_beside_others() else cores()


def is_beside_others() -> bool:
    """Whether another process of this program began this one, as it may have begun more."""
    # Not imported here: whoever was begun by it has it already.
    multiprocessing = sys.modules.get("multiprocessing.process")
    return multiprocessing is not None and multiprocessing.parent_process() is not None
