"""A reader that takes whole records only, with a receive buffer locked near the size of one.

The case argued when passt (a user-mode network) began to advertise windows below a segment as zero: a receiver that
wants records of 64 KiB locks SO_RCVBUF to that size, and reads nothing until a whole record is queued. If the window
fills before the record does, both sides wait forever. This reader reports that after a time and leaves.
"""

from __future__ import annotations

import array
import fcntl
import socket
import termios
import time
from dataclasses import dataclass

from tcpwin.lab.settings import setting
from tcpwin.lab.workload import SECOND_NS, Extent, Log, Workload, accept, finish, spread


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """The records."""

    record_bytes: int = setting(65536, "Size of one record.", least=1)
    records: int = setting(100, "How many.", least=1)


@dataclass(frozen=True, slots=True)
class DriveSettings:
    """How it is read."""

    record_bytes: int = setting(65536, "Size of one record.", least=1)
    receive_buffer_bytes: int = setting(65536, "Locked with SO_RCVBUF, which Linux doubles; 0: the kernel's.")
    look_s: float = setting(0.01, "Interval between checks for a record.", least=0.001)
    give_up_s: float = setting(10.0, "Leave after this time without a record.")


def serve(listener: socket.socket, settings: ServeSettings, log: Log) -> None:
    """Send the records to the first client."""
    connection = accept(listener)
    sent = 0
    record = bytes(settings.record_bytes)
    try:
        for _ in range(settings.records):
            connection.sendall(record)
            sent += 1
    except (BrokenPipeError, ConnectionResetError):
        log.write("left", records=sent)
    log.write("summary", records=sent, bytes=sent * settings.record_bytes)
    finish(connection)


def drive(address: tuple[str, int], settings: DriveSettings, log: Log) -> None:
    """Read records while they arrive."""
    waits_ns: list[int] = []
    stalled = False
    with socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET) as connection:
        if settings.receive_buffer_bytes:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, settings.receive_buffer_bytes)
        granted = connection.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        connection.connect(address)
        since_ns = time.monotonic_ns()
        while True:
            if _queued(connection) >= settings.record_bytes:
                connection.recv(settings.record_bytes, socket.MSG_WAITALL)
                waits_ns.append(time.monotonic_ns() - since_ns)
                since_ns += waits_ns[-1]
            elif _is_over(connection):
                break
            elif time.monotonic_ns() - since_ns > settings.give_up_s * SECOND_NS:
                stalled = True
                break
            else:
                time.sleep(settings.look_s)
        left = _queued(connection)
    summary = {f"{name}_wait_ns": value for name, value in spread(waits_ns or [0]).items()}
    log.write(
        "summary", records=len(waits_ns), stalled=stalled, left_bytes=left, granted_buffer_bytes=granted, **summary
    )


def _queued(connection: socket.socket) -> int:
    """Return the bytes that can be read at once."""
    count = array.array("i", [0])
    fcntl.ioctl(connection, termios.FIONREAD, count)
    return count[0]


def _is_over(connection: socket.socket) -> bool:
    """Whether the other end closed and nothing is left to read."""
    try:
        return not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False


def extent(serve: ServeSettings, drive: DriveSettings, rate_bps: float) -> Extent:
    """Return the records at the path's rate, or until it gives up."""
    total = serve.records * serve.record_bytes
    return Extent(max(8 * total / rate_bps, drive.give_up_s), total)


WORKLOAD = Workload(
    "record-reader",
    "whole records only, with a locked buffer",
    ServeSettings,
    DriveSettings,
    serve,
    drive,
    extent,
    __doc__,
)
