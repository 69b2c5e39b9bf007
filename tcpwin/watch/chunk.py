"""Packets as they come: some records of a pcap file, and what a source of them is."""

from __future__ import annotations

import struct
from typing import NamedTuple, Protocol

NANOSECONDS_MAGIC = 0xA1B23C4D
HEADER_BYTES = 24


class Chunk(NamedTuple):
    """Some records in a row.

    Attributes:
        records: as they stand in the file.
        packets: how many.
        first_ns, last_ns: times of the first and the last packet, nanoseconds since the epoch.
    """

    records: bytes
    packets: int
    first_ns: int
    last_ns: int


class PacketSource(Protocol):
    """Where packets come from.

    Attributes:
        header: that of a file of its records.
        name: what people call it.
        dropped: packets that were lost between the interface and us, so far.
        trouble: why no packets come now, in a sentence; empty where they may.
        is_over: there will be none any more.
        is_live: packets that are not taken in time are lost; else whoever writes them waits.
    """

    header: bytes
    name: str
    dropped: int
    trouble: str
    is_over: bool
    is_live: bool

    def take(self, timeout_s: float) -> list[Chunk]:
        """What came, after so many seconds at the latest."""

    def close(self) -> None:
        """Let go of it."""


def file_header(link_type: int, snaplen_bytes: int) -> bytes:
    """The header of a pcap file with nanoseconds, little-endian."""
    return struct.pack("<IHHiIII", NANOSECONDS_MAGIC, 2, 4, 0, 0, snaplen_bytes, link_type)
