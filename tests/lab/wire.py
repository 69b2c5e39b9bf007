"""The segments of a lab capture straight from its bytes, as ground truth independent of tcpwin.

Reads a lab pcap (little-endian, µs or ns, Ethernet or SLL2, IPv4 without options) and returns Segments as captured.
"""

from __future__ import annotations

import gzip
import struct
from dataclasses import dataclass
from pathlib import Path

UNITS_NS = {0xA1B2C3D4: 1_000, 0xA1B23C4D: 1}
LINK_HEADER_BYTES = {1: 14, 276: 20}
IP_HEADER_BYTES = 20
FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
END_OF_OPTIONS, NO_OPERATION, SACK, TIMESTAMPS = 0, 1, 5, 8
CYCLE = 1 << 32


@dataclass(frozen=True, slots=True)
class Segment:
    """One TCP segment on the wire.

    Attributes:
        length: payload by the IP header, also of a truncated packet.
        sacks: the blocks of the SACK option.
    """

    frame: int
    time_ns: int
    source_port: int
    target_port: int
    ip_id: int
    seq: int
    ack: int
    flags: int
    window: int
    length: int
    tsval: int | None
    tsecr: int | None
    sacks: tuple[tuple[int, int], ...]

    @property
    def end(self) -> int:
        """Return the sequence number after the payload."""
        return (self.seq + self.length) % CYCLE


def read_segments(capture: Path) -> list[Segment]:
    """Read every packet of a capture that contains only TCP."""
    data = gzip.decompress(capture.read_bytes())
    magic, link = struct.unpack_from("<I16xI", data)
    segments: list[Segment] = []
    at = 24
    while at < len(data):
        seconds, fraction, captured, _ = struct.unpack_from("<4I", data, at)
        time_ns = seconds * 1_000_000_000 + fraction * UNITS_NS[magic]
        packet = data[at + 16 + LINK_HEADER_BYTES[link] : at + 16 + captured]
        segments.append(_segment(len(segments) + 1, time_ns, packet))
        at += 16 + captured
    return segments


def _segment(frame: int, time_ns: int, packet: bytes) -> Segment:
    total, ip_id = struct.unpack_from(">2xHH", packet)
    source, target, seq, ack, offset, flags, window = struct.unpack_from(">HHIIBBH", packet, IP_HEADER_BYTES)
    header_bytes = (offset >> 4) * 4
    options = packet[IP_HEADER_BYTES + 20 : IP_HEADER_BYTES + header_bytes]
    length = total - IP_HEADER_BYTES - header_bytes
    return Segment(frame, time_ns, source, target, ip_id, seq, ack, flags, window, length, *_options(options))


def _options(options: bytes) -> tuple[int | None, int | None, tuple[tuple[int, int], ...]]:
    tsval = tsecr = None
    sacks: tuple[tuple[int, int], ...] = ()
    at = 0
    while at < len(options) and options[at] != END_OF_OPTIONS:
        if options[at] == NO_OPERATION:
            at += 1
            continue
        kind, size = options[at : at + 2]
        if kind == TIMESTAMPS:
            tsval, tsecr = struct.unpack_from(">II", options, at + 2)
        elif kind == SACK:
            edges = struct.unpack_from(f">{(size - 2) // 4}I", options, at + 2)
            sacks = tuple(zip(edges[::2], edges[1::2], strict=True))
        at += size
    return tsval, tsecr, sacks


def cut(capture: Path, until_ns: int, to: Path) -> Path:
    """Write the packets of a capture up to a time; return the new file."""
    data = gzip.decompress(capture.read_bytes())
    magic = struct.unpack_from("<I", data)[0]
    at = 24
    while at < len(data):
        seconds, fraction, captured = struct.unpack_from("<3I", data, at)
        if seconds * 1_000_000_000 + fraction * UNITS_NS[magic] > until_ns:
            break
        at += 16 + captured
    to.write_bytes(data[:at])
    return to
