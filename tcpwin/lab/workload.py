"""Workloads, their discovery, and the log that both ends write.

Each module of `tcpwin.lab.workloads` has one `WORKLOAD`. The serving end listens and sends; the driving end connects
and reads. Nothing here may busy-wait: in the lab's virtual time a busy loop never ends.
"""

from __future__ import annotations

import json
import math
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import IO, Any

from tcpwin.lab import workloads as _package

SECOND_NS = 1_000_000_000
DEFAULT_PORT = 5201
FRAME_BYTES = 1448
"""Payload of a full Ethernet frame with timestamps."""


class Log:
    """JSON lines: ``time_ns`` since the epoch, ``event``, and values with their units in their names."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out
        self.summary: dict[str, Any] = {}

    def write(self, event: str, **values: Any) -> None:
        """Write one line; the `summary` line is also kept for display."""
        if event == "summary":
            self.summary = values
        self._out.write(json.dumps({"time_ns": time.time_ns(), "event": event, **values}) + "\n")
        self._out.flush()


@dataclass(frozen=True, slots=True)
class Extent:
    """Duration of a run in virtual time, and the maximum bytes it sends."""

    seconds: float
    bytes: float


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload.

    Attributes:
        name: its name, in kebab-case.
        title: short description.
        serve_settings: settings dataclass of the end that listens and sends.
        drive_settings: settings dataclass of the end that connects and reads.
        serve: takes a listening socket, settings and a log; returns after one run.
        drive: takes the address to connect to, settings and a log; returns after one run.
        extent: returns a run's extent from both ends' settings and the path's rate, if nothing else slows it.
        page: the module's docstring.
    """

    name: str
    title: str
    serve_settings: type
    drive_settings: type
    serve: Callable[[socket.socket, Any, Log], None]
    drive: Callable[[tuple[str, int], Any, Log], None]
    extent: Callable[[Any, Any, float], Extent]
    page: str


@cache
def workloads() -> Mapping[str, Workload]:
    """Return the workloads by name."""
    found = [
        import_module(f"{_package.__name__}.{module.name}").WORKLOAD
        for module in iter_modules(_package.__path__)
        if not module.name.startswith("_")
    ]
    return {each.name: each for each in sorted(found, key=lambda each: each.name)}


class Meter:
    """Counts bytes per second since its creation and logs each whole second."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._began_ns = time.monotonic_ns()
        self._seconds: list[int] = [0]
        self.total_bytes = 0

    def add(self, count_bytes: int) -> None:
        """Count bytes just read."""
        index = (time.monotonic_ns() - self._began_ns) // SECOND_NS
        while len(self._seconds) <= index:
            self._end_second()
        self._seconds[-1] += count_bytes
        self.total_bytes += count_bytes

    def summary(self) -> dict[str, Any]:
        """Return total bytes, time and rate, and the minimum and maximum of the inner seconds."""
        elapsed_ns = max(1, time.monotonic_ns() - self._began_ns)
        whole = self._seconds[1:-1]
        rates = [8 * count for count in whole]
        return {
            "bytes": self.total_bytes,
            "elapsed_ns": elapsed_ns,
            "rate_bps": round(8 * self.total_bytes * SECOND_NS / elapsed_ns),
            "least_second_bps": min(rates, default=None),
            "most_second_bps": max(rates, default=None),
        }

    def _end_second(self) -> None:
        count = self._seconds[-1]
        self._log.write("second", index=len(self._seconds) - 1, bytes=count, rate_bps=8 * count)
        self._seconds.append(0)


def spread(values: Sequence[int]) -> dict[str, int]:
    """Return minimum, percentiles by nearest rank, maximum and mean of at least one value."""
    ordered = sorted(values)

    def rank(percent: int) -> int:
        return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]

    mean = round(sum(ordered) / len(ordered))
    return {"least": ordered[0], "p50": rank(50), "p95": rank(95), "p99": rank(99), "most": ordered[-1], "mean": mean}


def accept(listener: socket.socket) -> socket.socket:
    """Accept a connection that sends small pieces immediately."""
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def finish(connection: socket.socket) -> None:
    """Shut down sending, and wait until the other end closes."""
    try:
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(4096):
            pass
    except OSError:
        pass  # The other end closed first, which also ends the run.
    connection.close()
