"""The rates of consecutive transfers with different buffer sizes.

Each size gets a separate connection, with SO_SNDBUF at the serving end and SO_RCVBUF at the driving end; 0 leaves both
to the kernel. Linux doubles the value and caps it at net.core.wmem_max and rmem_max; the log has the actual size. Both
ends need the same sizes.
"""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass

from tcpwin.lab.settings import setting
from tcpwin.lab.workload import SECOND_NS, Extent, Log, Meter, Workload, accept, finish

_SIZES = (65536, 262144, 1048576, 4194304, 0)


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """The transfers."""

    buffer_bytes: tuple[int, ...] = setting(_SIZES, "Send buffers, one transfer each; 0: the kernel's.")
    seconds: float = setting(10.0, "Duration of each transfer.")
    chunk_bytes: int = setting(1 << 20, "Size of one write.", least=1)


@dataclass(frozen=True, slots=True)
class DriveSettings:
    """How it is read."""

    buffer_bytes: tuple[int, ...] = setting(_SIZES, "Receive buffers, one transfer each; 0: the kernel's.")
    chunk_bytes: int = setting(1 << 20, "Size of one read.", least=1)


def serve(listener: socket.socket, settings: ServeSettings, log: Log) -> None:
    """Send to one connection per size."""
    chunk = memoryview(bytes(settings.chunk_bytes))
    total = 0
    for size in settings.buffer_bytes:
        connection = accept(listener)
        granted = _set(connection, socket.SO_SNDBUF, size)
        end_ns = time.monotonic_ns() + round(settings.seconds * SECOND_NS)
        sent = 0
        while time.monotonic_ns() < end_ns:
            sent += connection.send(chunk)
        log.write("transfer", buffer_bytes=size, granted_bytes=granted, bytes=sent)
        finish(connection)
        total += sent
    log.write("summary", bytes=total)


def drive(address: tuple[str, int], settings: DriveSettings, log: Log) -> None:
    """Read each transfer to its end."""
    rates: dict[str, int] = {}
    buffer = bytearray(settings.chunk_bytes)
    for size in settings.buffer_bytes:
        with socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET) as connection:
            # The SYN fixes the window scale, so the buffer must be set before.
            granted = _set(connection, socket.SO_RCVBUF, size)
            connection.connect(address)
            meter = Meter(log)
            while count := connection.recv_into(buffer):
                meter.add(count)
        measured = meter.summary()
        rates[f"rate_{size}_bps"] = measured["rate_bps"]
        log.write("transfer", buffer_bytes=size, granted_bytes=granted, **measured)
    log.write("summary", **rates)


def _set(connection: socket.socket, option: int, size: int) -> int:
    if size:
        connection.setsockopt(socket.SOL_SOCKET, option, size)
    return connection.getsockopt(socket.SOL_SOCKET, option)


def extent(serve: ServeSettings, drive: DriveSettings, rate_bps: float) -> Extent:  # noqa: ARG001
    """Return one duration per size."""
    seconds = len(serve.buffer_bytes) * serve.seconds
    return Extent(seconds, seconds * rate_bps / 8)


WORKLOAD = Workload(
    "transfer-rate",
    "the rate of a transfer by buffer size",
    ServeSettings,
    DriveSettings,
    serve,
    drive,
    extent,
    __doc__,
)
