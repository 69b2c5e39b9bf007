"""Why the kernel dropped packets: its own reasons, the newest of them, from the tracepoint `skb:kfree_skb`.

In: tracefs. Out: a file of text as the kernel writes it, with a reason a line. The ring is an instance of our own,
bounded, and gone when we go; it costs something only where packets are dropped. Facts are from
Documentation/trace/ftrace.rst.
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
"""Of each processor."""
_CLOCK = "tai"
"""Seconds since the epoch, where a kernel has that clock: from Linux 6.1 on."""


@contextmanager
def recording_drops(folder: Path) -> Iterator[Callable[[], Sequence[Path]]]:
    """Record as long as a `with` statement lasts; gives what writes the newest into `folder`, and names the file.

    Raises:
        SourceError: the kernel does not tell, or not this user.
    """
    tracefs = next((each for each in TRACEFS if (each / _EVENT).exists()), None)
    if tracefs is None:
        raise SourceError(
            "why packets are dropped cannot be told: tracefs is not mounted at /sys/kernel/tracing, or this user may "
            "not look there (it needs root, or CAP_DAC_OVERRIDE beside CAP_NET_RAW)"
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
        raise SourceError(f"why packets are dropped cannot be told: {error.strerror or error} ({ring})") from None
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
    """Remove the rings of recorders that were killed."""
    for left in instances.glob(f"{_NAME}*"):
        if not Path("/proc", left.name.removeprefix(_NAME)).exists():
            left.rmdir()
