"""Thousands of connections that never read: how much data the kernel accepts for them, as in "Tuning linux network
stack".

The driving end connects and never reads. The serving end accepts for a time, writes until no connection takes more,
waits so that memory can be inspected, and then resets all of them, because no FIN would pass a closed window. Both ends
need a file descriptor per connection.
"""

from __future__ import annotations

import resource
import select
import socket
import struct
import time
from dataclasses import dataclass

from tcpwin.lab.settings import SettingsError, setting
from tcpwin.lab.workload import SECOND_NS, Extent, Log, Workload, spread

_RESET_ON_CLOSE = struct.pack("@ii", 1, 0)
_OTHER_FILES = 64
_BUFFERS_BYTES = 10 << 20


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """The three stages; the defaults are the article's."""

    accept_s: float = setting(15.0, "Seconds of accepting connections.")
    write_s: float = setting(15.0, "Seconds of writing.")
    hold_s: float = setting(30.0, "Seconds of waiting.")
    connections: int = setting(10000, "Maximum number; writing begins when it is reached.", least=1)
    chunk_bytes: int = setting(65536, "Size of one write.", least=1)


@dataclass(frozen=True, slots=True)
class DriveSettings:
    """Number of connections."""

    connections: int = setting(10000, "How many.", least=1)


def serve(listener: socket.socket, settings: ServeSettings, log: Log) -> None:
    """Accept, write, hold, reset."""
    _allow_files(settings.connections)
    connections = _accept_all(listener, settings)
    log.write("accepted", connections=len(connections))
    written = _write_all(connections, settings)
    total = sum(written)
    log.write("written", bytes=total)
    time.sleep(settings.hold_s)
    for connection in connections:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        connection.close()
    summary = {f"{name}_written_bytes": value for name, value in spread(written or [0]).items()}
    log.write("summary", connections=len(connections), bytes=total, **summary)


def drive(address: tuple[str, int], settings: DriveSettings, log: Log) -> None:
    """Connect, and wait for the reset."""
    _allow_files(settings.connections)
    connections = [socket.create_connection(address) for _ in range(settings.connections)]
    log.write("connected", connections=len(connections))
    end = select.poll()
    # Without POLLIN, so that only the reset wakes it, not data.
    end.register(connections[0], select.POLLERR | select.POLLHUP)
    end.poll()
    for connection in connections:
        connection.close()
    log.write("summary", connections=len(connections))


def _accept_all(listener: socket.socket, settings: ServeSettings) -> list[socket.socket]:
    end_ns = time.monotonic_ns() + round(settings.accept_s * SECOND_NS)
    connections: list[socket.socket] = []
    while len(connections) < settings.connections and (left_ns := end_ns - time.monotonic_ns()) > 0:
        listener.settimeout(left_ns / SECOND_NS)
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            break
        connection.setblocking(False)
        connections.append(connection)
    return connections


def _write_all(connections: list[socket.socket], settings: ServeSettings) -> list[int]:
    """Write to every connection that accepts data, and return the bytes that each took."""
    end_ns = time.monotonic_ns() + round(settings.write_s * SECOND_NS)
    chunk = bytes(settings.chunk_bytes)
    written = [0] * len(connections)
    number = {connection.fileno(): index for index, connection in enumerate(connections)}
    with select.epoll() as ready:
        for file in number:
            ready.register(file, select.EPOLLOUT)
        while (left_ns := end_ns - time.monotonic_ns()) > 0:
            for file, _ in ready.poll(left_ns / SECOND_NS, 1024):
                index = number[file]
                try:
                    written[index] += connections[index].send(chunk)
                except BlockingIOError:
                    continue
                except OSError:
                    ready.unregister(file)
    return written


def _allow_files(connections: int) -> None:
    """Raise this process's limit of open files as needed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + _OTHER_FILES
    if soft >= needed:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, max(hard, needed)))
    except (ValueError, PermissionError):
        raise SettingsError(
            f"{connections:,} connections need {needed:,} open files, and this user may have {hard:,} (ulimit -Hn)"
        ) from None


def extent(serve: ServeSettings, drive: DriveSettings, rate_bps: float) -> Extent:
    """Return the three stages, with at most Linux's default receive and send buffer per connection."""
    seconds = serve.accept_s + serve.write_s + serve.hold_s
    return Extent(seconds, min(drive.connections * _BUFFERS_BYTES, serve.write_s * rate_bps / 8))


WORKLOAD = Workload(
    "max-send", "thousands of connections that never read", ServeSettings, DriveSettings, serve, drive, extent, __doc__
)
