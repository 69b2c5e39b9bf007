"""Loopback connections in many states, to be sampled."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from live import make_listener, sockets_of, until

from tcpwin.hosts import SnapshotFile, SocketSample
from tcpwin.hosts.collect import Filter
from tcpwin.hosts.collect.sockets import SocketDump

PAYLOAD = b"x" * 300_000
RUNNING = ("lastsnd_ns", "lastrcv_ns", "lastack_ns")
"""Clocks that advance while nothing happens."""


def look(wanted: Filter) -> list[dict[str, Any]]:
    """Return the complete records of wanted sockets."""
    with SocketDump(wanted=wanted.matches) as dump:
        return dump.look(everything=True).whole


def samples_of(path: Path) -> list[SocketSample]:
    """Return the socket samples of a recording; every line must be understood."""
    file = SnapshotFile(path)
    samples = [sample for sample in file if isinstance(sample, SocketSample)]
    assert (file.format, file.unknown.count) == ("snap", 0)
    return samples


def receive(end: socket.socket, count: int) -> None:
    """Read exactly this many bytes."""
    while count:
        count -= len(end.recv(count))


def is_there_ipv6() -> bool:
    """Return whether this host has an IPv6 loopback address."""
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


def wait_for_rest(wanted: Filter) -> None:
    """Wait until nothing about a socket changes for longer than a delayed ACK (TCP_DELACK_MAX, 200 ms)."""
    seen: list[list[dict[str, Any]]] = [[]]

    def is_at_rest() -> bool:
        now = [
            {name: value for name, value in each.items() if name not in {*RUNNING, "timer"}}
            for each in sorted(look(wanted), key=lambda each: each["cookie"])
        ]
        seen.append(now)
        return now == seen[-2]

    until(is_at_rest, every_s=0.3)


class Pairs:
    """Loopback connections in many states, all idle but one."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.listener = self._keep(make_listener())
        self.port: int = self.listener.getsockname()[1]
        self.version_6: tuple[socket.socket, ...] = ()
        self.read = self.connect()
        self.unread = self.connect()
        self.read[0].sendall(PAYLOAD)
        receive(self.read[1], len(PAYLOAD))
        self.read[1].sendall(b"answer")
        self.unread[0].sendall(b"y" * 1000)
        self.closed = self.connect()
        self.closed[0].shutdown(socket.SHUT_WR)
        if is_there_ipv6():
            both = socket.create_server(("::", self.port), family=socket.AF_INET6, dualstack_ipv6=False)
            self.version_6 = self.connect(address="::1", listener=self._keep(both))
        wait_for_rest(self.filter)
        # The receiver's window on this one is closed: the sender waits with its persist timer, and sometimes probes.
        self.full = self.connect(receive_bytes=4096)
        self.full[0].setblocking(False)
        for _ in range(100):
            try:
                self.full[0].send(PAYLOAD)
            except BlockingIOError:
                break
        # This one is never accepted.
        self.waiting = self._keep(socket.create_connection(("127.0.0.1", self.port)))
        self.count = 14 if self.version_6 else 11
        until(lambda: sockets_of(self.filter) == self.count)
        until(lambda: [each.get("timer", {}).get("name") for each in look(self.filter)].count("persist") == 1)

    def _keep(self, each: socket.socket) -> socket.socket:
        return self._stack.enter_context(each)

    def connect(
        self, *, address: str = "127.0.0.1", listener: socket.socket | None = None, receive_bytes: int | None = None
    ) -> tuple[socket.socket, socket.socket]:
        """Return both ends of a new connection."""
        listener = listener or self.listener
        if receive_bytes is not None:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        client = self._keep(socket.create_connection((address, self.port)))
        return client, self._keep(listener.accept()[0])

    @property
    def filter(self) -> Filter:
        """Return a filter of these sockets."""
        return Filter(f"sport = :{self.port} or dport = :{self.port}")
