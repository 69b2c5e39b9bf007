"""The TCP sockets of this host, dumped by the kernel over netlink (NETLINK_SOCK_DIAG).

In: a predicate on messages. Out: records of the sockets that changed since the last dump, and which disappeared.
Works for any user. Keeps the last message of each socket.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tcpwin.errors import SnapshotError
from tcpwin.hosts.collect.changes import Comparison, comparison_of
from tcpwin.hosts.collect.message import (
    COOKIE_AT,
    EXPIRES_AT,
    HEADER,
    WANTED,
    read_socket,
)

_SOCK_DIAG = 4
_GET_TCP_SOCKETS = 18
_ERROR, _DONE, _OVERRUN = 2, 3, 4
_DUMP = 0x301
_ALL_STATES = 0xFFF
_REQUEST = struct.Struct("=IHHII3xB48xI4x")
_MESSAGE = struct.Struct("=IHHII")
_RECEIVE_BYTES = 1 << 15
_PATIENCE_SECONDS = 10

Wanted = Callable[[bytes], bool]
"""Whether the socket of an `inet_diag_msg` is wanted."""


@dataclass(slots=True)
class Sockets:
    """Result of one dump.

    Attributes:
        count: number of matching sockets.
        whole: full records of sockets that are new, or whose rarely changing fields changed.
        changes: for other sockets, JSON objects with the cookie and the changed fields; null for values that became
            unknown.
        gone: cookies of sockets that disappeared since the previous dump; empty in a full sample.
    """

    count: int = 0
    whole: list[dict[str, Any]] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)


_Known = tuple[bytes, Comparison, int]
"""The last message of a socket, the comparison for its successor, and its cookie."""


class SocketDump:
    """Reads the sockets of this network namespace.

    Python's own netlink socket is the transport: one system call gives dozens of sockets, where pyroute2 0.9.7 spends
    50 µs on each before anything is decoded. The request is TCPDIAG_GETSOCK: unlike SOCK_DIAG_BY_FAMILY, it gives
    IPv4 and IPv6 in one walk over the kernel's tables (net/ipv4/inet_diag.c, inet_diag_dump_compat).
    """

    def __init__(self, *, wanted: Wanted | None = None) -> None:
        if not sys.platform.startswith("linux"):
            raise SnapshotError("sockets can be sampled on Linux only", "snap")
        self._wanted = wanted
        self._known: dict[bytes, _Known] = {}
        self._sequence = 0
        try:
            self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG)
            self._socket.settimeout(_PATIENCE_SECONDS)
            self._socket.bind((0, 0))
        except OSError as error:
            raise SnapshotError(f"this system does not allow a netlink socket ({error.strerror})", "snap") from None

    def __enter__(self) -> SocketDump:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the netlink socket."""
        self._socket.close()

    def look(self, *, everything: bool = False) -> Sockets:
        """Dump the sockets; with `everything`, return full records of all.

        A socket counts as unchanged if only times advanced: its timer and the time since it last sent or received.

        Raises:
            SnapshotError: the kernel refuses or does not answer.
        """
        found = Sockets()
        before, self._known = self._known, {}
        try:
            for message in self._dump():
                if self._wanted is not None and not self._wanted(message):
                    continue
                key = message[COOKIE_AT:EXPIRES_AT]
                known = None if everything else before.get(key)
                changes = None
                if known is not None and len(message) == len(known[0]):
                    changes = known[1].changes(known[0], message)
                if known is not None and changes is not None:
                    if changes:
                        found.changes.append(f'{{"cookie":{known[2]},{changes}}}')
                        known = (message, known[1], known[2])
                    self._known[key] = known
                elif key not in self._known:
                    record, parts = read_socket(message)
                    self._known[key] = (message, comparison_of(len(message), parts), record["cookie"])
                    found.whole.append(record)
        except ValueError as error:
            raise SnapshotError(f"the kernel's answer cannot be read: {error}", "snap") from None
        found.count = len(self._known)
        if not everything:
            found.gone = [known[2] for key, known in before.items() if key not in self._known]
        return found

    def _dump(self) -> Iterator[bytes]:
        self._sequence += 1
        request = _REQUEST.pack(_REQUEST.size, _GET_TCP_SOCKETS, _DUMP, self._sequence, 0, WANTED, _ALL_STATES)
        try:
            self._socket.send(request)
            while True:
                data = self._socket.recv(_RECEIVE_BYTES)
                at = 0
                while at + _MESSAGE.size <= len(data):
                    length, kind, _, sequence, _ = _MESSAGE.unpack_from(data, at)
                    if length < _MESSAGE.size or at + length > len(data):
                        raise SnapshotError("the kernel's answer is truncated", "snap")
                    body = at + _MESSAGE.size
                    if sequence != self._sequence:
                        pass
                    elif kind in (_ERROR, _DONE):
                        if (code := _code(data, body, at + length)) > 0:
                            raise SnapshotError(_why(code), "snap")
                        return
                    elif kind == _OVERRUN:
                        raise SnapshotError("the kernel lost part of its answer", "snap")
                    elif length < _MESSAGE.size + HEADER.size:
                        raise SnapshotError(f"the kernel describes a socket with {length} bytes", "snap")
                    else:
                        yield data[body : at + length]
                    at += length + 3 & ~3
        except OSError as error:
            reason = "no answer" if isinstance(error, TimeoutError) else error.strerror
            raise SnapshotError(f"the kernel does not list its sockets ({reason})", "snap") from None


def _code(data: bytes, body: int, end: int) -> int:
    code: int = struct.unpack_from("=i", data, body)[0] if end - body >= 4 else 0
    return -code


def _why(code: int) -> str:
    hint = ": the module tcp_diag is missing" if code == errno.ENOENT else ""
    return f"the kernel does not list its sockets ({os.strerror(code)}{hint})"
