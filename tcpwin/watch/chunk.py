"""Packets as they arrive: chunks of pcap records, and the protocol of their sources."""

from __future__ import annotations

import struct
from typing import NamedTuple, Protocol

NANOSECONDS_MAGIC = 0xA1B23C4D
HEADER_BYTES = 24


class Chunk(NamedTuple):
    """Consecutive records.

    Attributes:
        records: packet records in the file's format.
        packets: their number.
        first_ns, last_ns: times of the first and the last packet, nanoseconds since the epoch.
    """

    records: bytes
    packets: int
    first_ns: int
    last_ns: int


class PacketSource(Protocol):
    """A source of packets.

    Attributes:
        header: file header for its records.
        name: display name.
        dropped: packets lost so far between the interface and this process.
        trouble: why no packets arrive now, in a sentence; empty if they may.
        is_over: whether the source has ended.
        is_live: whether packets not taken in time are lost; otherwise their writer waits.
    """

    header: bytes
    name: str
    dropped: int
    trouble: str
    is_over: bool
    is_live: bool

    def take(self, timeout_s: float) -> list[Chunk]:
        """Return the arrived packets after at most this many seconds."""

    def close(self) -> None:
        """Release it."""


def file_header(link_type: int, snaplen_bytes: int) -> bytes:
    """Return the header of a little-endian pcap file with nanosecond times."""
    return struct.pack("<IHHiIII", NANOSECONDS_MAGIC, 2, 4, 0, 0, snaplen_bytes, link_type)
