"""Requests and answers on one connection: HTTP, SQL or RPC, with a client that thinks and a server that works.

The driving end asks, the serving end answers. Both may write a message in several parts, with or without Nagle's
algorithm, and the client may have several requests under way (pipelining). The conversation is complete when the last
answer has been read; `completion_ns` counts from before the connection's SYN.
"""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import dataclass
from itertools import pairwise

from tcpwin.lab.settings import setting
from tcpwin.lab.workload import Extent, Log, Workload, finish

_HEADER = struct.Struct("!II")
"""Length of the request including this header, and of its answer."""
_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """How requests are answered."""

    work_s: float = setting(0.0, "Time from a whole request to its answer.")
    slow_every: int = setting(0, "After each this many requests …")
    slow_s: float = setting(0.0, "… take this much longer.")
    parts: int = setting(1, "Number of writes of an answer.", least=1)
    nagle: bool = setting(False, "Leave Nagle's algorithm on.")


@dataclass(frozen=True, slots=True)
class DriveSettings:
    """Number, size and timing of the requests."""

    count: int = setting(50, "Number of requests.", least=1)
    think_s: float = setting(0.0, "Time before each request.")
    request_bytes: int = setting(200, "Size of a request.", least=_HEADER.size)
    answer_bytes: int = setting(1000, "Size of its answer.", least=1, most=(1 << 32) - 1)
    parts: int = setting(1, "Number of writes of a request.", least=1)
    depth: int = setting(1, "Number of requests under way at once.", least=1)
    nagle: bool = setting(False, "Leave Nagle's algorithm on.")


def serve(listener: socket.socket, settings: ServeSettings, log: Log) -> None:
    """Answer the first client."""
    connection, _ = listener.accept()
    _set_nagle(connection, settings.nagle)
    reader = connection.makefile("rb")
    answers = work_ns = 0
    while len(header := reader.read(_HEADER.size)) == _HEADER.size:
        request_bytes, answer_bytes = _HEADER.unpack(header)
        if len(reader.read(request_bytes - _HEADER.size)) < request_bytes - _HEADER.size:
            break
        answers += 1
        began_ns = time.monotonic_ns()
        is_slow = settings.slow_every and answers % settings.slow_every == 0
        time.sleep(settings.work_s + (settings.slow_s if is_slow else 0))
        work_ns += time.monotonic_ns() - began_ns
        _write(connection, bytes(answer_bytes), settings.parts)
    log.write("summary", answers=answers, work_ns=work_ns)
    finish(connection)


def drive(address: tuple[str, int], settings: DriveSettings, log: Log) -> None:
    """Ask, and read the answers."""
    began_ns = time.monotonic_ns()
    buffer = memoryview(bytearray(min(settings.answer_bytes, _READ_BYTES)))
    request = _HEADER.pack(settings.request_bytes, settings.answer_bytes)
    request += bytes(settings.request_bytes - _HEADER.size)
    think_ns = read = 0
    with socket.create_connection(address) as connection:
        connect_ns = time.monotonic_ns() - began_ns
        _set_nagle(connection, settings.nagle)
        for number in range(settings.count + settings.depth - 1):
            if number < settings.count:
                thinks_ns = time.monotonic_ns()
                time.sleep(settings.think_s)
                think_ns += time.monotonic_ns() - thinks_ns
                _write(connection, request, settings.parts)
            if number >= settings.depth - 1:
                read += _read(connection, buffer, settings.answer_bytes)
        completion_ns = time.monotonic_ns() - began_ns
    log.write(
        "summary",
        exchanges=settings.count,
        bytes=read,
        connect_ns=connect_ns,
        think_ns=think_ns,
        completion_ns=completion_ns,
    )


def _set_nagle(connection: socket.socket, is_on: bool) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(not is_on))


def _write(connection: socket.socket, message: bytes, parts: int) -> None:
    """Write a message in parts, each larger than the one before, as a head and its body."""
    whole = parts * (parts + 1)
    ends = [len(message) * part * (part + 1) // whole for part in range(parts + 1)]
    for start, end in pairwise(ends):
        connection.sendall(message[start:end])


def _read(connection: socket.socket, buffer: memoryview, count: int) -> int:
    """Read a whole answer."""
    left = count
    while left:
        got = connection.recv_into(buffer, min(left, len(buffer)))
        if not got:
            raise ConnectionError("the other end closed within an answer")
        left -= got
    return count


def extent(serve: ServeSettings, drive: DriveSettings, rate_bps: float) -> Extent:
    """Return the time of work, thinking and data; round trips are not counted."""
    total = drive.count * (drive.request_bytes + drive.answer_bytes)
    slow_s = drive.count // serve.slow_every * serve.slow_s if serve.slow_every else 0
    seconds = drive.count * (serve.work_s + drive.think_s) + slow_s + 8 * total / rate_bps
    return Extent(seconds, total)


WORKLOAD = Workload(
    "conversation",
    "requests and answers: think time, server work, parts, pipelining",
    ServeSettings,
    DriveSettings,
    serve,
    drive,
    extent,
    __doc__,
)
