"""One connection, as fast as it goes: what iperf3 does.

The end that serves sends for a time, or a number of bytes; the end that drives reads all of it at once. Such a reader
never fills its receive queue, which is why it does not show what a large buffer costs.
"""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass

from tcpwin.lab.settings import setting
from tcpwin.lab.workload import SECOND_NS, Extent, Log, Meter, Workload, accept, finish


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """How much is sent."""

    seconds: float = setting(10.0, "Send for so long; 0 where bytes are given.")
    bytes: int = setting(0, "Send so many bytes instead.")
    chunk_bytes: int = setting(131072, "Of one write.", least=1)


@dataclass(frozen=True, slots=True)
class DriveSettings:
    """How it is read."""

    chunk_bytes: int = setting(131072, "Of one read.", least=1)


def serve(listener: socket.socket, settings: ServeSettings, log: Log) -> None:
    """Send to the first that connects."""
    connection = accept(listener)
    began_ns = time.monotonic_ns()
    end_ns = began_ns + round(settings.seconds * SECOND_NS)
    chunk = memoryview(bytes(settings.chunk_bytes))
    sent = 0
    while sent < settings.bytes if settings.bytes else time.monotonic_ns() < end_ns:
        left = settings.bytes - sent if settings.bytes else settings.chunk_bytes
        sent += connection.send(chunk[:left])
    log.write("summary", bytes=sent, elapsed_ns=time.monotonic_ns() - began_ns)
    finish(connection)


def drive(address: tuple[str, int], settings: DriveSettings, log: Log) -> None:
    """Read to the end."""
    with socket.create_connection(address) as connection:
        meter = Meter(log)
        buffer = bytearray(settings.chunk_bytes)
        while count := connection.recv_into(buffer):
            meter.add(count)
    log.write("summary", **meter.summary())


def extent(serve: ServeSettings, drive: DriveSettings, rate_bps: float) -> Extent:  # noqa: ARG001
    """Bytes at the path's rate, or the rate for a time."""
    seconds = 8 * serve.bytes / rate_bps if serve.bytes else serve.seconds
    return Extent(seconds, seconds * rate_bps / 8)


WORKLOAD = Workload("bulk", "one connection at full speed", ServeSettings, DriveSettings, serve, drive, extent, __doc__)
