"""Variants of a benchmark capture: the same packets without SYNs, in IPv6, in a tunnel …

Takes a plain pcap file of Ethernet, IPv4 and TCP with headers of at most 96 bytes, as `generate` writes it.
"""

import struct
from collections.abc import Callable, Iterator
from pathlib import Path

HEAD_BYTES, RECORD_BYTES, ETHERNET_BYTES, IP_BYTES = 24, 16, 14, 20
TIMESTAMPS, NOP = 8, 1
SYN, ACK = 2, 16
CHUNK_PACKETS = 4_096

Packet = tuple[bytes, bytes]
"""The record's raw timestamp, then its captured bytes preceded by their length on the wire."""
Reshape = Callable[[Iterator[Packet]], Iterator[Packet]]


def reshape(source: Path, target: Path, how: Reshape) -> int:
    """Write the packets that `how` yields and return their number."""
    count, pieces = 0, []
    with source.open("rb") as file, target.open("wb") as out:
        out.write(file.read(HEAD_BYTES))
        for time, packet in how(_packets(file.read())):
            length, data = packet[:4], packet[4:]
            pieces += [time, struct.pack("<I", len(data)), length, data]
            count += 1
            if count % CHUNK_PACKETS == 0:
                out.write(b"".join(pieces))
                pieces.clear()
        out.write(b"".join(pieces))
    return count


def _packets(data: bytes) -> Iterator[Packet]:
    at = 0
    while at + RECORD_BYTES <= len(data):
        (captured,) = struct.unpack_from("<I", data, at + 8)
        end = at + RECORD_BYTES + captured
        yield data[at : at + 8], data[at + 12 : end]
        at = end


def without_syns(packets: Iterator[Packet]) -> Iterator[Packet]:
    """Yield each connection from after its handshake."""
    return (packet for packet in packets if not packet[1][4 + ETHERNET_BYTES + IP_BYTES + 13] & SYN)


def lone_syns(packets: Iterator[Packet]) -> Iterator[Packet]:
    """Yield a scan: the first SYN of each connection, unanswered."""
    for packet in packets:
        if packet[1][4 + ETHERNET_BYTES + IP_BYTES + 13] & (SYN | ACK) == SYN:
            yield packet


def swapped(packets: Iterator[Packet]) -> Iterator[Packet]:
    """Swap each packet with the next one; the times stay in place."""
    for first in packets:
        second = next(packets, None)
        if second is None:
            yield first
            return
        yield first[0], second[1]
        yield second[0], first[1]


def without_timestamps(packets: Iterator[Packet]) -> Iterator[Packet]:
    """Overwrite timestamps with NOPs."""
    for time, packet in packets:
        changed = bytearray(packet)
        tcp = 4 + ETHERNET_BYTES + IP_BYTES
        at, end = tcp + 20, min(tcp + (packet[tcp + 12] >> 4) * 4, len(packet))
        while at < end:
            kind = changed[at]
            length = 1 if kind <= NOP else changed[at + 1] if at + 1 < end else 0
            if kind == 0 or length == 0:
                break
            if kind == TIMESTAMPS:
                changed[at : at + length] = bytes([NOP]) * length
            at += length
        yield time, bytes(changed)


def in_ipv6(packets: Iterator[Packet]) -> Iterator[Packet]:
    """Map addresses to 2001:db8::a.b.c.d."""
    prefix = bytes.fromhex("20010db8") + bytes(8)
    for time, packet in packets:
        (wire_bytes,) = struct.unpack_from("<I", packet)
        ip = 4 + ETHERNET_BYTES
        (total,) = struct.unpack_from(">H", packet, ip + 2)
        header = struct.pack(">IHBB", 6 << 28, total - IP_BYTES, 6, packet[ip + 8])
        addresses = prefix + packet[ip + 12 : ip + 16] + prefix + packet[ip + 16 : ip + 20]
        ethernet = packet[4 : 4 + 12] + b"\x86\xdd"
        longer = struct.pack("<I", wire_bytes + 20)
        yield time, longer + ethernet + header + addresses + packet[ip + IP_BYTES :]


def in_vxlan(packets: Iterator[Packet]) -> Iterator[Packet]:
    """Wrap packets in UDP to port 4789 between two hosts."""
    for time, packet in packets:
        (wire_bytes,) = struct.unpack_from("<I", packet)
        (total,) = struct.unpack_from(">H", packet, 4 + ETHERNET_BYTES + 2)
        inner_bytes = ETHERNET_BYTES + total
        ip = struct.pack(
            ">BBHHHBBH4s4s", 0x45, 0, inner_bytes + 36, 0, 0x4000, 64, 17, 0, b"\xac\x10\0\1", b"\xac\x10\0\2"
        )
        udp = struct.pack(">HHHH", 49_152, 4_789, inner_bytes + 16, 0)
        outer = packet[4 : 4 + ETHERNET_BYTES] + ip + udp + b"\x08\0\0\0\0\0\x2a\0"
        yield time, struct.pack("<I", wire_bytes + len(outer)) + outer + packet[4:]
