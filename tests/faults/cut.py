"""The records of a classic pcap, and what a worse capture of the same traffic would hold."""

from __future__ import annotations

import gzip
import random
import struct
from pathlib import Path
from typing import NamedTuple

ETHERNET = 1
MAGIC = (bytes.fromhex("d4c3b2a1"), bytes.fromhex("4d3cb2a1"))
IPV6 = 0x86DD
CUT_BYTES = 64


class Record(NamedTuple):
    """A packet: seconds, their fraction in the file's unit, its bytes, and its original length."""

    seconds: int
    fraction: int
    data: bytes
    length: int

    @property
    def is_upward(self) -> bool:
        """Whether it was sent by the end with the smaller address and port."""
        is_v6 = int.from_bytes(self.data[12:14], "big") == IPV6
        at, size, tcp = (22, 16, 54) if is_v6 else (26, 4, 14 + 4 * (self.data[14] & 15))
        ends = [
            self.data[at + n * size : at + (n + 1) * size] + self.data[tcp + 2 * n : tcp + 2 * n + 2] for n in (0, 1)
        ]
        return ends[0] < ends[1]


def records(path: Path) -> tuple[bytes, list[Record]]:
    """Return the file header and the packets of a little-endian pcap of Ethernet; no packets if it is anything else."""
    raw = path.read_bytes()
    data = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    if data[:4] not in MAGIC or struct.unpack_from("<I", data, 20)[0] != ETHERNET:
        return data[:24], []
    found, at = [], 24
    while at < len(data):
        seconds, fraction, captured, length = struct.unpack_from("<IIII", data, at)
        found.append(Record(seconds, fraction, data[at + 16 : at + 16 + captured], length))
        at += 16 + captured
    return data[:24], found


def write(path: Path, header: bytes, packets: list[Record]) -> Path:
    """Write a pcap."""
    body = b"".join(struct.pack("<IIII", s, f, len(data), length) + data for s, f, data, length in packets)
    path.write_bytes(header + body)
    return path


def thinned(packets: list[Record], share: float, seed: int = 1) -> list[Record]:
    """Lose a share of the packets at random."""
    drawn = random.Random(seed)
    return [each for each in packets if drawn.random() >= share]


def snapped(packets: list[Record], size: int) -> list[Record]:
    """Keep the first bytes of each packet, and call that its original length.

    Packets that would lose less than `CUT_BYTES` stay whole: they look damaged rather than cut.
    """
    cut = [each._replace(data=each.data[:size], length=min(size, len(each.data))) for each in packets]
    return [new if old.length >= size + CUT_BYTES else old for old, new in zip(packets, cut, strict=True)]
