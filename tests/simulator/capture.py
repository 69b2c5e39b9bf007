"""Write runs as one pcap: each connection has unique addresses, with Ethernet, IPv4 and nanosecond times."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import BinaryIO

from simulator.run import Captured, Run
from simulator.segment import Segment
from simulator.settings import Settings

START_NS = 1_700_000_000_000_000_000
SECOND_NS = 1_000_000_000
MODULO = 1 << 32
SCALE = 7
PORTS = {"a": 40_000, "b": 5_201}
FIN, SYN, PUSH, ACK = 0x01, 0x02, 0x08, 0x10
ETHERNET = bytes.fromhex("020000000002020000000001") + b"\x08\x00"
SNAP = 128


@dataclass(frozen=True, slots=True)
class Numbers:
    """Both sides' initial sequence numbers and timestamps on the wire."""

    isn: dict[str, int]
    stamp: dict[str, int]

    @classmethod
    def of(cls, run: Run) -> Numbers:
        """Draw them from the run's seed; to wrap, the data's sequence numbers and timestamps pass 2^32 halfway."""
        settings, random = run.settings, Random(~run.settings.seed)
        isn = {side: random.randrange(1 << 31) for side in "ab"}
        stamp = {side: random.randrange(1 << 31) for side in "ab"}
        if settings.wrap:
            isn[settings.sender] = MODULO - settings.data_bytes // 2
            lasting_ms = run.captures[settings.sender][-1].time_ns // 1_000_000
            stamp[settings.sender] = MODULO - lasting_ms // 2
        return cls(isn, stamp)


def write(out: BinaryIO, runs: Iterable[tuple[Run, str]]) -> None:
    """Write the captures of runs, each at one side, as consecutive connections 0, 1, 2, ... of one file."""
    out.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, SNAP, 1))
    start_ns = START_NS
    for number, (run, side) in enumerate(runs):
        addresses = {"a": 0x0A000001 + number * 256, "b": 0x0A000002 + number * 256}
        numbers = Numbers.of(run)
        out.writelines(_packet(run.settings, start_ns, addresses, numbers, captured) for captured in run.captures[side])
        if run.captures[side]:
            start_ns += run.captures[side][-1].time_ns + SECOND_NS


def _packet(
    settings: Settings, start_ns: int, addresses: dict[str, int], numbers: Numbers, captured: Captured
) -> bytes:
    segment = captured.segment
    other = "b" if segment.side == "a" else "a"
    tcp = _tcp(segment, _options(settings, segment, other, numbers), other, numbers)
    length = 20 + len(tcp) + segment.length
    source, target = addresses[segment.side], addresses[other]
    ip = struct.pack(">BBHHHBBHII", 0x45, 0, length, segment.ip_id & 0xFFFF, 0x4000, 64, 6, 0, source, target)
    ip = ip[:10] + struct.pack(">H", _checksum(ip)) + ip[12:]
    packet = ETHERNET + ip + tcp
    seconds, nanoseconds = divmod(start_ns + captured.time_ns, SECOND_NS)
    # The payload is truncated, because its bytes do not matter.
    return struct.pack("<IIII", seconds, nanoseconds, len(packet), 14 + length) + packet


def _tcp(segment: Segment, options: bytes, other: str, numbers: Numbers) -> bytes:
    def wire(side: str, number: int) -> int:
        return (numbers.isn[side] + number) % MODULO

    flags = FIN * segment.fin | SYN * segment.syn | PUSH * segment.push | ACK * (segment.ack is not None)
    ack = 0 if segment.ack is None else wire(other, segment.ack)
    window = segment.window if segment.syn else segment.window >> SCALE
    header = struct.pack(
        ">HHIIBBHHH",
        PORTS[segment.side],
        PORTS[other],
        wire(segment.side, segment.seq),
        ack,
        (20 + len(options)) << 2,
        flags,
        window,
        0,
        0,
    )
    return header + options


def _options(settings: Settings, segment: Segment, other: str, numbers: Numbers) -> bytes:
    options = b""
    if segment.syn:
        options += struct.pack(">BBH", 2, 4, settings.mss) + struct.pack(">BBB", 3, 3, SCALE) + b"\x01"
        if settings.sack:
            options += b"\x04\x02\x01\x01"
    if segment.timestamps:
        value, echo = segment.timestamps
        value = (numbers.stamp[segment.side] + value) % MODULO
        echo = (numbers.stamp[other] + echo) % MODULO if echo else 0
        options += struct.pack(">BBBBII", 1, 1, 8, 10, value, echo)
    if segment.sacks:
        options += struct.pack(">BBBB", 1, 1, 5, 2 + 8 * len(segment.sacks))
        for left, right in segment.sacks:
            edges = ((numbers.isn[other] + edge) % MODULO for edge in (left, right))
            options += struct.pack(">II", *edges)
    return options


def _checksum(header: bytes) -> int:
    total: int = sum(struct.unpack(">10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF
