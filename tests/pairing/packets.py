"""Captures as lists of packets that tests can modify: clocks, missing packets, rewritten headers.

Reads a lab pcap and writes a modified one with nanoseconds. It handles IPv4 and TCP headers after Ethernet and computes
no checksums, which no pairing reads.
"""

from __future__ import annotations

import gzip
import random
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from lab.wire import LINK_HEADER_BYTES, UNITS_NS

ETHERNET = 1
IP_BYTES = 20
CYCLE = 1 << 32
END_OF_OPTIONS, NO_OPERATION, MSS, WINDOW_SCALE, SACK_PERMITTED, SACK, TIMESTAMPS = 0, 1, 2, 3, 4, 5, 8


@dataclass(frozen=True)
class Packet:
    """One packet. `data` begins with the IP header; `wire_bytes` counts from there."""

    time_ns: int
    data: bytes
    wire_bytes: int
    frame: int = 0
    """Frame in the original capture."""

    @property
    def ports(self) -> tuple[int, int]:
        return struct.unpack_from(">HH", self.data, IP_BYTES)

    @property
    def seq(self) -> int:
        return int(struct.unpack_from(">I", self.data, IP_BYTES + 4)[0])

    @property
    def flags(self) -> int:
        return self.data[IP_BYTES + 13]

    @property
    def header_bytes(self) -> int:
        return IP_BYTES + (self.data[IP_BYTES + 12] >> 4) * 4

    @property
    def payload_bytes(self) -> int:
        return int(struct.unpack_from(">H", self.data, 2)[0]) - self.header_bytes

    @property
    def ip_id(self) -> int:
        return int(struct.unpack_from(">H", self.data, 4)[0])

    def with_ip(self, at: int, form: str, *values: int) -> Packet:
        """Return the packet with changed IP header fields, or TCP header fields (after 20 bytes)."""
        data = bytearray(self.data)
        struct.pack_into(form, data, at, *values)
        return replace(self, data=bytes(data))

    def with_tcp(self, at: int, form: str, *values: int) -> Packet:
        return self.with_ip(IP_BYTES + at, form, *values)

    def option(self, kind: int) -> int | None:
        """Return where an option begins, from the start of the IP header."""
        at = IP_BYTES + 20
        while at < self.header_bytes and self.data[at] != END_OF_OPTIONS:
            if self.data[at] == kind:
                return at
            at += 1 if self.data[at] == NO_OPERATION else self.data[at + 1]
        return None

    def without_option(self, kind: int) -> Packet:
        at = self.option(kind)
        if at is None:
            return self
        length = self.data[at + 1]
        return replace(self, data=self.data[:at] + bytes([NO_OPERATION]) * length + self.data[at + length :])


def segment(
    time_ms: float,
    *,
    client: bool,
    seq: int,
    ack: int,
    flags: int,
    payload: int = 0,
    ip_id: int = 0,
    ttl: int = 64,
    sack: tuple[tuple[int, int], ...] = (),
    options: bytes = b"",
) -> Packet:
    """Make a segment between 10.0.0.1:1025 (the client) and 10.0.0.2:80, with only the given options."""
    hosts = [(0x0A000001, 1025), (0x0A000002, 80)]
    (source, port), (target, other) = hosts if client else hosts[::-1]
    if sack:
        blocks = b"".join(struct.pack(">II", *block) for block in sack)
        options += struct.pack("BBBB", NO_OPERATION, NO_OPERATION, SACK, 2 + len(blocks)) + blocks
    total = 40 + len(options) + payload
    ip = struct.pack(">BBHHHBBHII", 0x45, 0, total, ip_id, 0x4000, ttl, 6, 0, source, target)
    tcp = struct.pack(">HHIIBBHHH", port, other, seq, ack, 0x50 + 4 * len(options), flags, 1024, 0, 0)
    return Packet(1_700_000_000_000_000_000 + round(time_ms * 1e6), ip + tcp + options, total)


def read(capture: Path) -> list[Packet]:
    """Read every packet of a lab pcap."""
    return list(_read(capture))


@lru_cache(maxsize=8)
def _read(capture: Path) -> tuple[Packet, ...]:
    raw = capture.read_bytes()
    data = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    magic, link = struct.unpack_from("<I16xI", data)
    skip = LINK_HEADER_BYTES[link]
    packets: list[Packet] = []
    at = 24
    while at < len(data):
        seconds, fraction, captured, length = struct.unpack_from("<4I", data, at)
        packet = data[at + 16 + skip : at + 16 + captured]
        time_ns = seconds * 1_000_000_000 + fraction * UNITS_NS[magic]
        packets.append(Packet(time_ns, packet, length - skip, len(packets) + 1))
        at += 16 + captured
    return tuple(packets)


def write(path: Path, packets: Iterable[Packet]) -> Path:
    """Write packets as Ethernet with nanoseconds."""
    out = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, ETHERNET)]
    for packet in packets:
        seconds, fraction = divmod(packet.time_ns, 1_000_000_000)
        frame = bytes(12) + b"\x08\x00" + packet.data
        out.append(struct.pack("<4I", seconds, fraction, len(frame), packet.wire_bytes + 14) + frame)
    path.write_bytes(b"".join(out))
    return path


def each(packets: list[Packet], change: Callable[[Packet], Packet]) -> list[Packet]:
    """Change packets one by one."""
    return [change(packet) for packet in packets]


def skewed(packets: list[Packet], ppm: float, offset_ns: int = 0) -> list[Packet]:
    """A clock that runs fast from the first packet on, where it is ahead by an offset."""
    first_ns = packets[0].time_ns
    faster = [round((packet.time_ns - first_ns) * ppm / 1e6) for packet in packets]
    return [replace(each, time_ns=each.time_ns + more + offset_ns) for each, more in zip(packets, faster, strict=True)]


def stepped(packets: list[Packet], step_ns: int, at: float = 0.5) -> list[Packet]:
    """A clock that is set halfway through the capture."""
    first_ns, last_ns = packets[0].time_ns, packets[-1].time_ns
    when_ns = first_ns + int((last_ns - first_ns) * at)
    return [replace(each, time_ns=each.time_ns + (step_ns if each.time_ns >= when_ns else 0)) for each in packets]


def thinned(packets: list[Packet], share: float, seed: int = 1) -> list[Packet]:
    """A capture that lacks a share of its packets."""
    chance = random.Random(seed)
    return [packet for packet in packets if chance.random() >= share]


def shuffled(packets: list[Packet], by: int = 4, seed: int = 1) -> list[Packet]:
    """A file whose records are out of order by a few places, each with its own time."""
    chance = random.Random(seed)
    order = sorted(range(len(packets)), key=lambda index: index + chance.uniform(0, by))
    return [packets[index] for index in order]


def joined(packets: list[Packet], port: int, most: int = 16, size: int = 1448) -> list[Packet]:
    """GRO's result for the data from a port: consecutive segments of one size and timestamp as one frame.

    It has the time of the last. A frame grows while the next segment continues it, with the next IP id and the same
    acknowledgment and timestamp (net/ipv4/tcp_offload.c, tcp_gro_receive).
    """
    out: list[Packet] = []
    for packet in packets:
        if out and packet.ports[0] == port and _continues(out[-1], packet, most, size):
            total = out[-1].header_bytes + out[-1].payload_bytes + packet.payload_bytes
            grown = replace(out[-1].with_ip(2, ">H", total), wire_bytes=total, time_ns=packet.time_ns)
            out[-1] = grown
        else:
            out.append(packet)
    return out


def _continues(frame: Packet, packet: Packet, most: int, size: int) -> bool:
    payload = packet.payload_bytes
    if payload == 0 or frame.payload_bytes == 0 or frame.ports != packet.ports:
        return False
    count = frame.payload_bytes / size
    return (
        frame.payload_bytes % size == 0
        and payload <= size
        and frame.header_bytes + frame.payload_bytes + payload < 65_536
        and count < most
        and (frame.seq + frame.payload_bytes) % CYCLE == packet.seq
        and (frame.ip_id + count) % 65_536 == packet.ip_id
        and frame.data[IP_BYTES + 8 : IP_BYTES + 12] == packet.data[IP_BYTES + 8 : IP_BYTES + 12]
        and frame.data[IP_BYTES + 20 : frame.header_bytes] == packet.data[IP_BYTES + 20 : packet.header_bytes]
    )
