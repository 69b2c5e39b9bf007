"""Records of M-Lab's tcp-info: repeated socket dumps of one connection, as JSON lines.

In: lines of the unpacked archive, each with a time and the bytes of a message. Out: a SocketSample each. Source:
github.com/m-lab/tcp-info, netlink/archival-record.go: ``RawIDM`` is `struct inet_diag_msg`, ``Attributes`` holds the
value of each netlink attribute at the index of its number, both in base64.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator
from typing import Any

from tcpwin.hosts.collect.message import INFO, read_socket
from tcpwin.hosts.collect.tcp_info import zero_fields
from tcpwin.hosts.format import Format
from tcpwin.hosts.formats.snap import socket_sample, socket_values
from tcpwin.hosts.lines import Lines
from tcpwin.hosts.socket import SocketSample
from tcpwin.sources import read_moment

MAX_CHARACTERS = 1 << 16
"""Longest accepted line: a kernel message has about a thousand bytes."""
MAX_ATTRIBUTES = 256
_ATTRIBUTE = struct.Struct("=HH")


def recognise(head: list[str]) -> int:
    """Score these lines as such records, with the bytes of a message."""
    found = sum(_is_record(text) for text in head)
    return 95 if found and found * 2 >= sum(bool(text.strip()) for text in head) else 0


def _is_record(text: str) -> bool:
    return text.startswith('{"Timestamp":"') and ('"RawIDM":"' in text or '"Metadata":{' in text)


def read(lines: Lines) -> Iterator[SocketSample]:
    """Yield a sample per socket record."""
    index = 0
    for text in lines:
        if not text.strip():
            continue
        try:
            record = _parse(text)
            if "RawIDM" not in record and isinstance(record.get("Metadata"), dict):
                continue
            found = _values(record)
            found["time_ns"] = _time_ns(record.get("Timestamp"))
        except (ValueError, TypeError, RecursionError, struct.error):
            lines.reject(text)
            continue
        found = {name: value for name, value in found.items() if value is not None}
        yield socket_sample({**found, "line": lines.number, "index": index, "netid": "tcp"})
        index += 1


def _parse(text: str) -> dict[str, Any]:
    if len(text) > MAX_CHARACTERS:
        raise ValueError
    record = json.loads(text)
    if not isinstance(record, dict):
        raise TypeError
    return record


def _values(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record's values of its socket, including counts that are zero."""
    found = socket_values(read_socket(_message(record))[0])
    attributes = record.get("Attributes") or []
    packed = attributes[INFO] if len(attributes) > INFO else None
    if packed is None or found["state"] == "LISTEN":
        return found
    return {**zero_fields(len(base64.b64decode(packed))), **found}


def _message(record: dict[str, Any]) -> bytes:
    """Return the message as the kernel sent it."""
    attributes = record.get("Attributes") or []
    if len(attributes) > MAX_ATTRIBUTES:
        raise ValueError
    parts = [base64.b64decode(record.get("RawIDM", ""), validate=True)]
    for kind, packed in enumerate(attributes):
        if packed is not None:
            value = base64.b64decode(packed, validate=True)
            parts.append(_ATTRIBUTE.pack(len(value) + 4, kind) + value + bytes(-len(value) % 4))
    return b"".join(parts)


def _time_ns(text: Any) -> int:
    kind, time_ns = read_moment(text) if isinstance(text, str) else ("", 0)
    if kind != "at" or time_ns <= 0:
        raise ValueError
    return time_ns


FORMAT = Format(
    "mlab_tcp_info", "M-Lab's tcp-info: repeated samples of a connection's socket", recognise, read, ("sockets",)
)
