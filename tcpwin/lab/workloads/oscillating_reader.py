"""A reader that opens the window wide and then barely reads: the oscillating reader of Cloudflare's article.

"Optimizing TCP for high WAN throughput while preserving low latency" (2022-07-01): the daemon sends as fast as it can
and never stops. The reader reads as fast as it can for five seconds; takes 5 % of the most bytes that it read in any
second; then, for fifteen seconds, reads that many bytes and sleeps for the rest of each second. Three times.
"""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import dataclass

from tcpwin.lab.settings import setting
from tcpwin.lab.workload import SECOND_NS, Extent, Log, Workload, accept

_MOST_WAIT = struct.pack("@ll", 0, 50_000)
"""Timeout of a read, 50 ms (struct timeval), so that a second without data ends on time."""


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """Sending options."""

    chunk_bytes: int = setting(1 << 20, "Size of one write.", least=1)


@dataclass(frozen=True, slots=True)
class DriveSettings:
    """The pattern; the defaults are the article's."""

    fast_s: int = setting(5, "Seconds of reading at full speed.", least=1)
    slow_s: int = setting(15, "Seconds of slow reading.")
    slow_share: float = setting(0.05, "Share of the fastest second's bytes, read in each slow second.")
    loops: int = setting(3, "How often.", least=1)
    chunk_bytes: int = setting(1 << 20, "Size of one read.", least=1)


def serve(listener: socket.socket, settings: ServeSettings, log: Log) -> None:
    """Send to the first client until it leaves."""
    connection = accept(listener)
    chunk = bytes(settings.chunk_bytes)
    sent = 0
    try:
        while True:
            sent += connection.send(chunk)
    except (BrokenPipeError, ConnectionResetError):
        log.write("summary", bytes=sent)
    connection.close()


def drive(address: tuple[str, int], settings: DriveSettings, log: Log) -> None:
    """Read by the pattern, then close with unread data."""
    with socket.create_connection(address) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _MOST_WAIT)
        buffer = memoryview(bytearray(settings.chunk_bytes))
        loops: list[dict[str, int]] = []
        total = most = 0
        for loop in range(settings.loops):
            fast: list[int] = []
            for second in range(settings.fast_s + settings.slow_s):
                is_fast = second < settings.fast_s
                wanted = None if is_fast else int(most * settings.slow_share)
                count = _read_second(connection, buffer, wanted)
                total += count
                most = max(most, count)
                if is_fast:
                    fast.append(count)
                mode = "fast" if is_fast else "slow"
                log.write("second", loop=loop, mode=mode, index=second, bytes=count, rate_bps=8 * count)
            # Data queued when a later loop begins is read at memory speed, not the path's.
            steady = fast[1:] if loop and len(fast) > 1 else fast
            loops.append({"least_fast_bps": 8 * min(steady), "most_fast_bps": 8 * max(steady)})
            log.write("loop", index=loop, high_water_bytes=most, **loops[-1])
    names = {f"loop_{index}_{name}": value for index, loop in enumerate(loops) for name, value in loop.items()}
    log.write("summary", bytes=total, high_water_bytes=most, **names)


def _read_second(connection: socket.socket, buffer: memoryview, wanted: int | None) -> int:
    """Read for a second or up to a number of bytes, and sleep for the rest of the second."""
    end_ns = time.monotonic_ns() + SECOND_NS
    count = 0
    while time.monotonic_ns() < end_ns and (wanted is None or count < wanted):
        try:
            got = connection.recv_into(buffer, len(buffer) if wanted is None else min(len(buffer), wanted - count))
        except BlockingIOError:
            continue
        if not got:
            break
        count += got
    time.sleep(max(0, end_ns - time.monotonic_ns()) / SECOND_NS)
    return count


def extent(serve: ServeSettings, drive: DriveSettings, rate_bps: float) -> Extent:  # noqa: ARG001
    """Return the fast seconds at the path's rate; data read in the slow ones was queued before."""
    return Extent(drive.loops * (drive.fast_s + drive.slow_s), (drive.loops * drive.fast_s + 1) * rate_bps / 8)


WORKLOAD = Workload(
    "oscillating-reader",
    "a reader that opens the window wide, then barely reads, three times",
    ServeSettings,
    DriveSettings,
    serve,
    drive,
    extent,
    __doc__,
)
