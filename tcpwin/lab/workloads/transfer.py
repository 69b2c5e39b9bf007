"""One transfer of a number of bytes, by a writer and a reader that may be slow, or pause.

Both count bytes, not seconds: a stall comes after the same byte however fast the path is, so runs with one difference
are comparable. The transfer is complete when its last byte has been read; `completion_ns` counts from before the
connection's SYN. A trace, recorded from a real writer or reader, counts time.
"""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass
from itertools import pairwise

from tcpwin.lab.settings import SettingsError, setting
from tcpwin.lab.workload import SECOND_NS, Extent, Log, Workload, accept, finish

_SO_MAX_PACING_RATE = 47
"""From asm-generic/socket.h; the socket module lacks it."""


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """How much is sent, and how."""

    bytes: int = setting(10_000_000, "In all.", least=1)
    chunk_bytes: int = setting(131072, "Size of one write.", least=1)
    rate_mbps: float = setting(0.0, "Maximum writing rate; 0: as fast as the kernel accepts.")
    pause_bytes: int = setting(0, "Pause after each block of this many bytes; 0: never.")
    pause_s: float = setting(0.0, "Seconds of a pause.")
    pacing_mbps: float = setting(0.0, "The kernel's maximum sending rate (SO_MAX_PACING_RATE); 0: no limit.")
    trace_us: tuple[int, ...] = setting((), "Microseconds after the accept …", is_always_listed=False)
    trace_bytes: tuple[int, ...] = setting((), "… from which this many bytes are written.", is_always_listed=False)

    def __post_init__(self) -> None:
        _check_trace(self.trace_us, self.trace_bytes)


@dataclass(frozen=True, slots=True)
class DriveSettings:
    """How it is read."""

    chunk_bytes: int = setting(131072, "Size of one read.", least=1)
    rate_mbps: float = setting(0.0, "Maximum reading rate; 0: immediately.")
    fast_bytes: int = setting(0, "With slow_bytes: read this many immediately …")
    slow_bytes: int = setting(0, "… and then this many at rate_mbps, repeatedly; 0: all at rate_mbps.")
    stall_bytes: int = setting(0, "Stall after each block of this many bytes; 0: never.")
    stall_s: float = setting(0.0, "Seconds of a stall.")
    trace_us: tuple[int, ...] = setting((), "Microseconds after the connect …", is_always_listed=False)
    trace_bytes: tuple[int, ...] = setting((), "… from which this many bytes are read.", is_always_listed=False)

    def __post_init__(self) -> None:
        _check_trace(self.trace_us, self.trace_bytes)


def _check_trace(trace_us: tuple[int, ...], trace_bytes: tuple[int, ...]) -> None:
    if len(trace_us) != len(trace_bytes):
        raise SettingsError(f"trace_us has {len(trace_us)} steps, and trace_bytes {len(trace_bytes)}")
    if any(later < one for steps in (trace_us, trace_bytes) for one, later in pairwise(steps)):
        raise SettingsError("trace_us and trace_bytes never fall")


def serve(listener: socket.socket, settings: ServeSettings, log: Log) -> None:
    """Send to the first client."""
    connection = accept(listener)
    if settings.pacing_mbps:
        connection.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, round(settings.pacing_mbps * 1e6 / 8))
    began_ns = next_ns = time.monotonic_ns()
    traced = _Traced(settings, began_ns)
    chunk = memoryview(bytes(settings.chunk_bytes))
    sent = paused_ns = 0
    pause_at = settings.pause_bytes or settings.bytes
    while sent < settings.bytes:
        end = min(sent + settings.chunk_bytes, settings.bytes, pause_at, traced.wait(sent) or settings.bytes)
        connection.sendall(chunk[: end - sent])
        next_ns += _ns(end - sent, settings.rate_mbps)
        sent = end
        if settings.rate_mbps:
            next_ns = _sleep_until(next_ns)
        if sent == pause_at < settings.bytes:
            pause_at += settings.pause_bytes
            paused_ns += round(settings.pause_s * SECOND_NS)
            time.sleep(settings.pause_s)
            next_ns = time.monotonic_ns()
    log.write("summary", bytes=sent, elapsed_ns=time.monotonic_ns() - began_ns, paused_ns=paused_ns)
    finish(connection)


def drive(address: tuple[str, int], settings: DriveSettings, log: Log) -> None:
    """Read to the end."""
    began_ns = time.monotonic_ns()
    buffer = memoryview(bytearray(settings.chunk_bytes))
    read = stalled_ns = 0
    first_ns = last_ns = 0
    with socket.create_connection(address) as connection:
        connect_ns = time.monotonic_ns() - began_ns
        log.write("connected", connect_ns=connect_ns)
        next_ns = time.monotonic_ns()
        traced = _Traced(settings, next_ns)
        stall_at = settings.stall_bytes
        while count := connection.recv_into(buffer, _most(settings, read, stall_at, traced.wait(read))):
            last_ns = time.monotonic_ns()
            first_ns = first_ns or last_ns
            is_slow = _is_slow(settings, read)
            read += count
            if is_slow:
                next_ns = _sleep_until(max(next_ns, last_ns - _GRACE_NS) + _ns(count, settings.rate_mbps))
            if read == stall_at:
                stall_at += settings.stall_bytes
                stalled_ns += round(settings.stall_s * SECOND_NS)
                log.write("stall", bytes=read)
                time.sleep(settings.stall_s)
                next_ns = time.monotonic_ns()
    if not read:
        raise ConnectionError("the other end closed before it sent a byte")
    log.write(
        "summary",
        bytes=read,
        connect_ns=connect_ns,
        first_byte_ns=first_ns - began_ns,
        completion_ns=last_ns - began_ns,
        stalled_ns=stalled_ns,
    )


_GRACE_NS = 20_000_000
"""A reader that waited for data does not catch up for longer than this."""


class _Traced:
    """A replayed trace: nothing happens before its time."""

    def __init__(self, settings: ServeSettings | DriveSettings, began_ns: int) -> None:
        times_ns = (began_ns + 1000 * after for after in settings.trace_us)
        self._steps = list(zip(times_ns, settings.trace_bytes, strict=True))
        self._next = self._until = 0

    def wait(self, done_bytes: int) -> int:
        """Wait until more than `done_bytes` is available and return the new bound, or 0 if unbounded."""
        while self._next < len(self._steps) and self._until <= done_bytes:
            when_ns, self._until = self._steps[self._next]
            _sleep_until(when_ns)
            self._next += 1
        return self._until if self._until > done_bytes else 0


def _most(settings: DriveSettings, read: int, stall_at: int, until: int) -> int:
    """Return the bytes of the next read, up to the next change of pace."""
    most = min(settings.chunk_bytes, until - read) if until else settings.chunk_bytes
    if stall_at:
        most = min(most, stall_at - read)
    if settings.slow_bytes and settings.rate_mbps:
        place = read % (settings.fast_bytes + settings.slow_bytes)
        edge = settings.fast_bytes if place < settings.fast_bytes else settings.fast_bytes + settings.slow_bytes
        most = min(most, edge - place)
    return most


def _is_slow(settings: DriveSettings, read: int) -> bool:
    if not settings.rate_mbps:
        return False
    return not settings.slow_bytes or read % (settings.fast_bytes + settings.slow_bytes) >= settings.fast_bytes


def _ns(count_bytes: int, rate_mbps: float) -> int:
    return round(8000 * count_bytes / rate_mbps) if rate_mbps else 0


def _sleep_until(until_ns: int) -> int:
    """Sleep until then and return that time, or the current time if it had passed."""
    now_ns = time.monotonic_ns()
    if until_ns > now_ns:
        time.sleep((until_ns - now_ns) / SECOND_NS)
        return until_ns
    return now_ns


def extent(serve: ServeSettings, drive: DriveSettings, rate_bps: float) -> Extent:
    """Return the bytes at the lowest of the rates, plus the pauses of both."""
    slow_share = drive.slow_bytes / (drive.fast_bytes + drive.slow_bytes) if drive.slow_bytes else 1
    seconds = 8 * serve.bytes / min(rate_bps, 1e6 * serve.rate_mbps or rate_bps)
    if drive.rate_mbps:
        seconds = max(seconds, 8 * serve.bytes * slow_share / (1e6 * drive.rate_mbps))
    seconds += serve.bytes // serve.pause_bytes * serve.pause_s if serve.pause_bytes else 0
    seconds += serve.bytes // drive.stall_bytes * drive.stall_s if drive.stall_bytes else 0
    seconds = max([seconds, *(last / 1e6 for last in (*serve.trace_us[-1:], *drive.trace_us[-1:]))])
    return Extent(seconds, serve.bytes)


WORKLOAD = Workload(
    "transfer",
    "bytes by a writer and a reader that may be slow or pause",
    ServeSettings,
    DriveSettings,
    serve,
    drive,
    extent,
    __doc__,
)
