"""Messages with gaps between them, each answered: the TCPping of Ably's article on global latency.

The serving end sends a message, waits, and sends the next; with a heartbeat it sends small ones in between. The driving
end answers each with sixteen bytes. One-way delays compare the clocks of both ends, which must agree between two hosts;
in the lab they share one. Round trips use one clock only.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from dataclasses import dataclass

from tcpwin.lab.settings import setting
from tcpwin.lab.workload import FRAME_BYTES, SECOND_NS, Extent, Log, Workload, accept, finish, spread

_HEADER = struct.Struct("!QII")
"""Sending time (ns since the epoch), number, and length including this header."""
_HEARTBEAT = 0xFFFF_FFFF


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """The messages and their timing."""

    message_bytes: int = setting(30720, "Size of a message.", least=_HEADER.size)
    count: int = setting(20, "Number of messages.", least=1)
    gap_s: float = setting(2.0, "Interval between messages.")
    heartbeat_s: float = setting(0.0, "Interval between heartbeats; 0 for none.")
    heartbeat_bytes: int = setting(100, "Size of a heartbeat.", least=_HEADER.size)


@dataclass(frozen=True, slots=True)
class DriveSettings:
    """No settings: it reads everything."""


def serve(listener: socket.socket, settings: ServeSettings, log: Log) -> None:
    """Send the messages to the first client, and read the answers."""
    connection = accept(listener)
    round_trips_ns: list[int] = []
    failed: list[OSError] = []

    def take() -> None:
        try:
            _take_answers(connection, settings.count, round_trips_ns, log)
        except OSError as error:
            failed.append(error)

    answers = threading.Thread(target=take)
    answers.start()
    next_ns = time.monotonic_ns()
    for index in range(settings.count):
        if failed:
            break
        connection.sendall(_message(index, settings.message_bytes))
        next_ns += round(settings.gap_s * SECOND_NS)
        _wait(connection, settings, next_ns)
    answers.join()
    if failed:
        raise failed[0]
    summary = _spread("round_trip", round_trips_ns)
    log.write("summary", messages=settings.count, bytes=settings.count * settings.message_bytes, **summary)
    finish(connection)


def drive(address: tuple[str, int], settings: DriveSettings, log: Log) -> None:  # noqa: ARG001
    """Read messages, note their delays, answer."""
    delays_ns: list[int] = []
    heartbeats_ns: list[int] = []
    with socket.create_connection(address) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        reader = connection.makefile("rb")
        while len(header := reader.read(_HEADER.size)) == _HEADER.size:
            sent_ns, index, length = _HEADER.unpack(header)
            reader.read(length - _HEADER.size)
            delay_ns = time.time_ns() - sent_ns
            if index == _HEARTBEAT:
                heartbeats_ns.append(delay_ns)
                continue
            delays_ns.append(delay_ns)
            log.write("message", index=index, bytes=length, one_way_delay_ns=delay_ns)
            connection.sendall(header)
    summary = _spread("one_way_delay", delays_ns) | _spread("heartbeat_delay", heartbeats_ns)
    log.write("summary", messages=len(delays_ns), heartbeats=len(heartbeats_ns), **summary)


def _spread(what: str, values_ns: list[int]) -> dict[str, int]:
    """Return statistics, or nothing without values: a delay of 0 would be a value."""
    return {f"{name}_{what}_ns": value for name, value in spread(values_ns).items()} if values_ns else {}


def _message(index: int, length: int) -> bytes:
    return _HEADER.pack(time.time_ns(), index, length) + bytes(length - _HEADER.size)


def _wait(connection: socket.socket, settings: ServeSettings, until_ns: int) -> None:
    """Sleep until then, sending heartbeats."""
    beat_ns = round(settings.heartbeat_s * SECOND_NS)
    while beat_ns and time.monotonic_ns() + beat_ns < until_ns:
        time.sleep(settings.heartbeat_s)
        connection.sendall(_message(_HEARTBEAT, settings.heartbeat_bytes))
    time.sleep(max(0, until_ns - time.monotonic_ns()) / SECOND_NS)


def _take_answers(connection: socket.socket, count: int, round_trips_ns: list[int], log: Log) -> None:
    reader = connection.makefile("rb")
    for _ in range(count):
        answer = reader.read(_HEADER.size)
        if len(answer) < _HEADER.size:
            return
        sent_ns, index, _ = _HEADER.unpack(answer)
        round_trips_ns.append(time.time_ns() - sent_ns)
        log.write("answer", index=index, round_trip_ns=round_trips_ns[-1])


def extent(serve: ServeSettings, drive: DriveSettings, rate_bps: float) -> Extent:  # noqa: ARG001
    """Return one gap per message."""
    seconds = serve.count * serve.gap_s
    beats = seconds / serve.heartbeat_s if serve.heartbeat_s else 0
    # A heartbeat is a separate frame, however small.
    return Extent(seconds, serve.count * serve.message_bytes + beats * FRAME_BYTES)


WORKLOAD = Workload(
    "messages",
    "messages with gaps, each answered: one-way delays",
    ServeSettings,
    DriveSettings,
    serve,
    drive,
    extent,
    __doc__,
)
