"""Records in the format of M-Lab's tcp-info archive, from this host's kernel.

Written after github.com/m-lab/tcp-info, netlink/archival-record.go (MakeArchivalRecord), without tcpwin's reader.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterable

HEADER_BYTES = 72
"""Size of `struct inet_diag_msg`."""


def metadata(uuid: str = "host_1795288970_0000000000000001") -> str:
    """Return the first line of a file."""
    told = {"UUID": uuid, "Sequence": 0, "StartTime": "2026-11-21T19:22:50Z"}
    return json.dumps({"Timestamp": "0001-01-01T00:00:00Z", "Metadata": told}, separators=(",", ":"))


def record(message: bytes, timestamp: str) -> str:
    """Return the line of a message of the kernel's dump."""
    values: dict[int, bytes] = {}
    at = HEADER_BYTES
    while at + 4 <= len(message):
        length, kind = struct.unpack_from("=HH", message, at)
        values[kind] = message[at + 4 : at + length]
        at += (length + 3) & ~3
    attributes = [
        base64.b64encode(values[kind]).decode() if kind in values else None for kind in range(max(values) + 1)
    ]
    told = {
        "Timestamp": timestamp,
        "RawIDM": base64.b64encode(message[:HEADER_BYTES]).decode(),
        "Attributes": attributes,
    }
    return json.dumps(told, separators=(",", ":"))


def archive(lines: Iterable[str]) -> bytes:
    """Return a file of these lines."""
    return "".join(f"{line}\n" for line in lines).encode()
