"""The kernel's latest packet drops with reasons, from the tracepoint `skb:kfree_skb`.

In: tracefs. Out: a text file as the kernel writes it, with one reason per line. The ring is a private, bounded instance
that is removed at the end; it costs time only when packets are dropped. Source: Documentation/trace/ftrace.rst.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tcpwin.errors import SourceError

TRACEFS = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))
MOST_LINES = 10_000
_EVENT = Path("events") / "skb" / "kfree_skb"
_NAME = "tcpwin-watch-"
_FILE = "drops.txt"
_RING_KIB = 256
"""Size per CPU."""
_CLOCK = "tai"
"""Seconds since the epoch, on kernels with this clock (Linux 6.1 and later)."""


@contextmanager
def recording_drops(folder: Path) -> Iterator[Callable[[], Sequence[Path]]]:
    """Record during a `with` statement; yield a function that writes the latest into `folder` and returns the file.

    Raises:
        SourceError: the kernel or this user's rights do not allow it.
    """
    tracefs = next((each for each in TRACEFS if (each / _EVENT).exists()), None)
    if tracefs is None:
        raise SourceError(
            "cannot record why packets are dropped: tracefs is not mounted at /sys/kernel/tracing, or this user may "
            "not read it (this needs root, or CAP_DAC_OVERRIDE in addition to CAP_NET_RAW)"
        )
    instances = tracefs / "instances"
    ring = instances / f"{_NAME}{os.getpid()}"
    try:
        _clear(instances)
        ring.mkdir()
        (ring / "buffer_size_kb").write_text(str(_RING_KIB))
        if _CLOCK in (ring / "trace_clock").read_text():
            (ring / "trace_clock").write_text(_CLOCK)
        (ring / _EVENT / "enable").write_text("1")
    except OSError as error:
        with suppress(OSError):
            ring.rmdir()
        raise SourceError(f"cannot record why packets are dropped: {error.strerror or error} ({ring})") from None
    try:
        yield lambda: [_write(ring, folder)]
    finally:
        with suppress(OSError):
            (ring / _EVENT / "enable").write_text("0")
            ring.rmdir()
        (folder / _FILE).unlink(missing_ok=True)


def _write(ring: Path, folder: Path) -> Path:
    path = folder / _FILE
    with suppress(OSError), (ring / "trace").open(encoding="utf-8", errors="replace") as trace:
        path.write_text("".join(deque(trace, MOST_LINES)), encoding="utf-8")
    return path


def _clear(instances: Path) -> None:
    """Remove the rings of killed recorders."""
    for left in instances.glob(f"{_NAME}*"):
        if not Path("/proc", left.name.removeprefix(_NAME)).exists():
            left.rmdir()
