"""A reader that stops for a while and continues: the window closes, the sender probes, the window opens.

The serving end sends a number of bytes. The driving end alternates between reading and pausing a given number of times,
then reads the rest.
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

    bytes: int = setting(20_000_000, "In all.", least=1)
    chunk_bytes: int = setting(131072, "Size of one write.", least=1)


@dataclass(frozen=True, slots=True)
class DriveSettings:
    """When it reads."""

    read_s: float = setting(1.0, "Seconds of reading before each stall.")
    stall_s: float = setting(5.0, "Seconds of a stall.")
    stalls: int = setting(1, "How many.")
    chunk_bytes: int = setting(131072, "Size of one read.", least=1)


def serve(listener: socket.socket, settings: ServeSettings, log: Log) -> None:
    """Send to the first client."""
    connection = accept(listener)
    began_ns = time.monotonic_ns()
    chunk = memoryview(bytes(settings.chunk_bytes))
    sent = 0
    while sent < settings.bytes:
        sent += connection.send(chunk[: settings.bytes - sent])
    log.write("summary", bytes=sent, elapsed_ns=time.monotonic_ns() - began_ns)
    finish(connection)


def drive(address: tuple[str, int], settings: DriveSettings, log: Log) -> None:
    """Read, stall, read the rest."""
    buffer = bytearray(settings.chunk_bytes)
    stalled_ns = 0
    with socket.create_connection(address) as connection:
        meter = Meter(log)
        is_over = False
        for index in range(settings.stalls):
            end_ns = time.monotonic_ns() + round(settings.read_s * SECOND_NS)
            while not is_over and time.monotonic_ns() < end_ns:
                count = connection.recv_into(buffer)
                meter.add(count)
                is_over = not count
            if is_over:
                break
            began_ns = time.monotonic_ns()
            log.write("stall", index=index)
            time.sleep(settings.stall_s)
            stalled_ns += time.monotonic_ns() - began_ns
            log.write("resume", index=index)
        while not is_over:
            count = connection.recv_into(buffer)
            meter.add(count)
            is_over = not count
    log.write("summary", stalled_ns=stalled_ns, **meter.summary())


def extent(serve: ServeSettings, drive: DriveSettings, rate_bps: float) -> Extent:
    """Return the bytes at the path's rate, plus the stalls."""
    return Extent(8 * serve.bytes / rate_bps + drive.stalls * drive.stall_s, serve.bytes)


WORKLOAD = Workload(
    "stalled-reader", "a reader that stops for a while", ServeSettings, DriveSettings, serve, drive, extent, __doc__
)
