"""Incomplete copies of a capture, as in the field: packets left out, or truncated.

Takes a pcap, gzipped or not, and the kind of incompleteness; returns pcap bytes. Times, order and link headers stay.
"""

from __future__ import annotations

import gzip
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

FILE_HEADER, RECORD_HEADER, TCP_HEADER = 24, 16, 20
LINK_BYTES = {1: 14, 113: 16, 276: 20}
"""Length of the link header (Ethernet, Linux cooked version 1 and 2) by link type."""
SYN, ACK = 0x02, 0x10
PROTOCOL_TCP = 6
DROPPED = 50


@dataclass(frozen=True, slots=True)
class Record:
    """One record of the file.

    Attributes:
        head, packet: its header and its bytes.
        tcp: offset of the TCP header; None if it is not TCP over IPv4.
        flags: of the TCP header, otherwise 0.
        port: source port, otherwise -1.
        payload_bytes: on the wire.
    """

    head: bytes
    packet: bytes
    tcp: int | None
    flags: int
    port: int
    payload_bytes: int


@dataclass(frozen=True)
class Capture:
    """A pcap in memory."""

    header: bytes
    records: list[Record]

    @cached_property
    def sender(self) -> int:
        """Return the port that sent most data."""
        sent: Counter[int] = Counter()
        for record in self.records:
            sent[record.port] += record.payload_bytes
        return sent.most_common(1)[0][0]


def read(path: Path) -> Capture:
    """Read a little-endian pcap."""
    data = path.read_bytes()
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    header = data[:FILE_HEADER]
    link = LINK_BYTES[struct.unpack_from("<I", header, 20)[0] & 0xFFFF]
    return Capture(header, list(_records(data, link)))


def _records(data: bytes, link: int) -> Iterator[Record]:
    at = FILE_HEADER
    while at < len(data):
        head = data[at : at + RECORD_HEADER]
        length = struct.unpack_from("<I", head, 8)[0]
        packet = data[at + RECORD_HEADER : at + RECORD_HEADER + length]
        at += RECORD_HEADER + length
        is_tcp = packet[link] >> 4 == 4 and packet[link + 9] == PROTOCOL_TCP
        if not is_tcp:
            yield Record(head, packet, None, 0, -1, 0)
            continue
        tcp = link + (packet[link] & 15) * 4
        whole = struct.unpack_from(">H", packet, link + 2)[0]
        payload = whole - (tcp - link) - (packet[tcp + 12] >> 4) * 4
        yield Record(head, packet, tcp, packet[tcp + 13], struct.unpack_from(">H", packet, tcp)[0], payload)


def _without(flags: int) -> Callable[[Capture], list[Record]]:
    return lambda capture: [each for each in capture.records if each.flags & (SYN | ACK) != flags]


def _only(*, sender: bool) -> Callable[[Capture], list[Record]]:
    return lambda capture: [each for each in capture.records if (each.port == capture.sender) == sender]


def _cut(capture: Capture) -> list[Record]:
    """Truncate headers before the TCP options, as with a snapshot length of 54."""
    kept = []
    for each in capture.records:
        packet = each.packet if each.tcp is None else each.packet[: each.tcp + TCP_HEADER]
        head = each.head[:8] + struct.pack("<I", len(packet)) + each.head[12:]
        kept.append(Record(head, packet, each.tcp, each.flags, each.port, each.payload_bytes))
    return kept


WAYS: Mapping[str, Callable[[Capture], list[Record]]] = {
    "without SYN/ACK": _without(SYN | ACK),
    "without SYN": _without(SYN),
    "without SYNs": lambda capture: [each for each in capture.records if not each.flags & SYN],
    "second half": lambda capture: capture.records[len(capture.records) // 2 :],
    "options cut": _cut,
    "data only": _only(sender=True),
    "ACKs only": _only(sender=False),
    "every 50th dropped": lambda capture: [each for number, each in enumerate(capture.records, 1) if number % DROPPED],
}


def incomplete(capture: Capture, way: str) -> bytes:
    """Return the incomplete file."""
    return capture.header + b"".join(each.head + each.packet for each in WAYS[way](capture))
