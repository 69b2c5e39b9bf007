"""The segments of a lab capture straight from its bytes, as ground truth independent of tcpwin.

Reads a lab pcap (little-endian, µs or ns, Ethernet or SLL2, IPv4 without options) and returns Segments as captured.
"""

from __future__ import annotations

import gzip
import struct
from functools import cache
from pathlib import Path
from typing import NamedTuple

UNITS_NS = {0xA1B2C3D4: 1_000, 0xA1B23C4D: 1}
LINK_HEADER_BYTES = {1: 14, 276: 20}
IP_HEADER_BYTES = 20
FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
END_OF_OPTIONS, NO_OPERATION, SACK, TIMESTAMPS = 0, 1, 5, 8
CYCLE = 1 << 32
RECORD = struct.Struct("<3I")
HEADERS = struct.Struct(">2xHH14xHHIIBBH")
"""The headers of IPv4 and TCP up to the window."""
ONLY_TIMESTAMPS = bytes((NO_OPERATION, NO_OPERATION, TIMESTAMPS, 10))
"""The options of most segments begin so, and hold nothing else."""
TWO_NUMBERS = struct.Struct(">II")


class Segment(NamedTuple):
    """One TCP segment on the wire. Runs have half a million, and a dataclass takes four times as long to make.

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


@cache
def read_segments(capture: Path) -> list[Segment]:
    """Read every packet of a capture that contains only TCP. Callers share the list."""
    data = gzip.decompress(capture.read_bytes())
    magic, link = struct.unpack_from("<I16xI", data)
    unit_ns, link_bytes = UNITS_NS[magic], 16 + LINK_HEADER_BYTES[link]
    segments: list[Segment] = []
    at = 24
    while at < len(data):
        seconds, fraction, captured = RECORD.unpack_from(data, at)
        start = at + link_bytes
        total, ip_id, source, target, seq, ack, offset, flags, window = HEADERS.unpack_from(data, start)
        header_bytes = IP_HEADER_BYTES + (offset >> 4) * 4
        tsval, tsecr, sacks = _options(data[start + HEADERS.size + 4 : start + header_bytes])
        time_ns = seconds * 1_000_000_000 + fraction * unit_ns
        length = total - header_bytes
        segments.append(
            Segment(
                len(segments) + 1, time_ns, source, target, ip_id, seq, ack, flags, window, length, tsval, tsecr, sacks
            )
        )
        at += 16 + captured
    return segments


def _options(options: bytes) -> tuple[int | None, int | None, tuple[tuple[int, int], ...]]:
    if len(options) == 12 and options.startswith(ONLY_TIMESTAMPS):
        return (*TWO_NUMBERS.unpack_from(options, 4), ())
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
