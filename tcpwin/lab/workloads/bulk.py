"""One connection at full speed, like iperf3.

The serving end sends for a time, or a number of bytes; the driving end reads everything immediately. Such a reader
never fills its receive queue, so it does not show the cost of a large buffer.
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

    seconds: float = setting(10.0, "Duration of sending; 0 if bytes are given.")
    bytes: int = setting(0, "Number of bytes to send instead.")
    chunk_bytes: int = setting(131072, "Size of one write.", least=1)


@dataclass(frozen=True, slots=True)
class DriveSettings:
    """How it is read."""

    chunk_bytes: int = setting(131072, "Size of one read.", least=1)


def serve(listener: socket.socket, settings: ServeSettings, log: Log) -> None:
    """Send to the first client."""
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
    """Return the bytes at the path's rate, or the rate for a time."""
    seconds = 8 * serve.bytes / rate_bps if serve.bytes else serve.seconds
    return Extent(seconds, seconds * rate_bps / 8)


WORKLOAD = Workload("bulk", "one connection at full speed", ServeSettings, DriveSettings, serve, drive, extent, __doc__)
