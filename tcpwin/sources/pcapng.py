"""Packets as a pcapng stream, the form in which scapy's and dpkt's packets reach the engine.

Block layouts: draft-ietf-opsawg-pcapng §4.1 (Section Header), §4.2 (Interface Description, if_tsresol 9 = nanoseconds),
§4.3 (Enhanced Packet). Payload is cut off, because the engine does not read it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import IO, TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from decimal import Decimal

KEPT_BYTES = 512
"""Enough for the headers of all supported tunnels."""


class RawPacket(NamedTuple):
    """One packet: nanoseconds since the epoch, pcap link type, captured bytes, bytes on the wire."""

    time_ns: int
    link_type: int
    data: bytes
    original_bytes: int


def nanoseconds(seconds: float | Decimal) -> int:
    """Convert scapy's and dpkt's seconds: decimals are exact, floats have microsecond resolution."""
    from decimal import Decimal

    if isinstance(seconds, Decimal):
        return int(seconds * 1_000_000_000)
    return round(seconds * 1_000_000) * 1000


def write_packets(packets: Iterable[RawPacket]) -> IO[bytes]:
    """Write all packets to an unnamed temporary file and return it, rewound."""
    import tempfile

    file = tempfile.TemporaryFile()  # noqa: SIM115 - handed to the caller
    try:
        _write_blocks(file, packets)
    except BaseException:
        file.close()
        raise
    file.seek(0)
    return file


def _write_blocks(file: IO[bytes], packets: Iterable[RawPacket]) -> None:
    file.write(_block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
    interfaces: dict[int, int] = {}
    for packet in packets:
        interface = interfaces.get(packet.link_type)
        if interface is None:
            interface = interfaces[packet.link_type] = len(interfaces)
            resolution = struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)
            file.write(_block(1, struct.pack("<HHI", packet.link_type, 0, 0) + resolution))
        data = packet.data[:KEPT_BYTES]
        original_bytes = max(packet.original_bytes, len(data))
        high, low = divmod(packet.time_ns & 0xFFFFFFFFFFFFFFFF, 1 << 32)
        header = struct.pack("<IIIII", interface, high, low, len(data), original_bytes)
        file.write(_block(6, header + data + bytes(-len(data) % 4)))


def _block(kind: int, body: bytes) -> bytes:
    length = len(body) + 12
    return struct.pack("<II", kind, length) + body + struct.pack("<I", length)
