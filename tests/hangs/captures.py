"""Captures cut at a time: the packets until then, and one of another connection to show the duration."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from io import BytesIO

from hangs.judge import SIZES, UNITS

import tcpwin

ARP = b"\x08\x06" + bytes(46)


def cut(header: bytes, records: Sequence[tuple[int, bytes]], end_ns: int | None = None) -> bytes:
    """Return the records as a capture file, lasting until `end_ns` if given."""
    last = b"" if end_ns is None else _nobodys(header, end_ns)
    return header + b"".join(record for _, record in records) + last


def analyze(capture: bytes) -> tcpwin.Analysis:
    return tcpwin.analyze(BytesIO(capture))


def _nobodys(header: bytes, time_ns: int) -> bytes:
    link, unit = int.from_bytes(header[20:24], "little"), UNITS[int.from_bytes(header[:4], "little")]
    frame = bytes(SIZES[link] - 2) + ARP if link != 276 else ARP[:2] + bytes(18) + ARP[2:]
    return struct.pack("<IIII", time_ns // 10**9, time_ns % 10**9 // unit, len(frame), len(frame)) + frame
