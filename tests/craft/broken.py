"""Build the damaged and odd captures of captures/broken, byte for byte.

All contain the same six segments, or what their damage leaves of them. Formats: draft-ietf-opsawg-pcap and -pcapng, RFC
1952 (gzip), RFC 8878 (zstd), the LZ4 frame format. Compressed ones use stored blocks only, so no library version
affects their bytes. `python tests/craft/broken.py FOLDER` writes them without truths.
"""

from __future__ import annotations

import struct
import sys
import zlib
from collections.abc import Iterable
from pathlib import Path

PCAP_HEADER = 24
RECORD_HEADER = 16
ETHERNET = 1
CLIENT, SERVER = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
MSS, WINDOW_SCALE, SACK_PERMITTED = b"\x02\x04\x05\xb4", b"\x01\x03\x03\x07", b"\x01\x01\x04\x02"
SECOND = 1_600_000_000

Packet = tuple[int, bytes]


def segment(
    *,
    from_client: bool,
    seq: int,
    ack: int,
    flags: int,
    window: int,
    options: bytes = b"",
    payload: bytes = b"",
) -> bytes:
    """Return one Ethernet frame with correct checksums."""
    src, dst = (CLIENT, SERVER) if from_client else (SERVER, CLIENT)
    ports = (40000, 9000) if from_client else (9000, 40000)
    offset_flags = (5 + len(options) // 4) << 12 | flags
    head = struct.pack(">HHIIHH", *ports, seq, ack, offset_flags, window)
    length = 20 + len(options) + len(payload)
    pseudo = src + dst + struct.pack(">HH", 6, length)
    check = _checksum(pseudo + head + bytes(4) + options + payload)
    tcp = head + struct.pack(">HH", check, 0) + options + payload
    fields = struct.pack(">BBHHHBB", 0x45, 0, 20 + length, seq & 0xFFFF, 0x4000, 64, 6)
    ip = fields + struct.pack(">H", _checksum(fields + bytes(2) + src + dst)) + src + dst
    macs = (b"\x02\0\0\0\0\x0b", b"\x02\0\0\0\0\x0a")
    return b"".join(macs if from_client else macs[::-1]) + b"\x08\x00" + ip + tcp


def _checksum(data: bytes) -> int:
    padded = data + bytes(len(data) % 2)
    total = sum(struct.unpack(f">{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def conversation(options: bytes = MSS) -> list[Packet]:
    """Return microseconds and frame of: SYN, SYN/ACK, ACK, 100 bytes that fill the window, zero window, update."""

    def client(seq: int, flags: int, window: int = 64240, **more: bytes) -> bytes:
        ack = 0 if flags == SYN else 5001
        return segment(from_client=True, seq=1000 + seq, ack=ack, flags=flags, window=window, **more)

    def server(ack: int, flags: int, window: int, seq: int = 1, **more: bytes) -> bytes:
        return segment(from_client=False, seq=5000 + seq, ack=1000 + ack, flags=flags, window=window, **more)

    return [
        (0, client(0, SYN, options=options)),
        (40_000, server(1, SYN | ACK, 100, seq=0, options=options)),
        (40_100, client(1, ACK)),
        (41_000, client(1, PSH | ACK, payload=bytes(range(100)))),
        (81_000, server(101, ACK, 0)),
        (281_000, server(101, ACK, 100)),
    ]


def pcap(packets: Iterable[Packet], *, magic: int = 0xA1B2C3D4, order: str = "<", snaplen: int = 262144) -> bytes:
    """Return a pcap file; packets longer than `snaplen` are truncated to it."""
    out = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snaplen, ETHERNET)
    for micros, frame in packets:
        kept = frame[:snaplen]
        ticks = micros * 1000 if magic == 0xA1B23C4D else micros
        out += struct.pack(order + "IIII", SECOND, ticks, len(kept), len(frame)) + kept
    return out


def block(kind: int, body: bytes, order: str = "<", *, length: int | None = None, trailer: int | None = None) -> bytes:
    """Return a pcapng block; `length` and `trailer` falsify its total length."""
    body += bytes(-len(body) % 4)
    total = len(body) + 12
    first = total if length is None else length
    return (
        struct.pack(order + "II", kind, first) + body + struct.pack(order + "I", total if trailer is None else trailer)
    )


def section(order: str = "<") -> bytes:
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(order: str = "<", options: bytes = b"") -> bytes:
    return block(1, struct.pack(order + "HHI", ETHERNET, 0, 0) + options, order)


def enhanced(
    packet: Packet,
    order: str = "<",
    *,
    ticks: int | None = None,
    interface_id: int = 0,
    length: int | None = None,
    trailer: int | None = None,
) -> bytes:
    micros, frame = packet
    time = SECOND * 1_000_000 + micros if ticks is None else ticks
    head = struct.pack(order + "IIIII", interface_id, time >> 32, time & 0xFFFFFFFF, len(frame), len(frame))
    body = head + frame + bytes(-len(frame) % 4)
    return block(6, body, order, length=length, trailer=trailer)


def pcapng(packets: Iterable[Packet]) -> bytes:
    return section() + interface() + b"".join(enhanced(packet) for packet in packets)


def gzip(data: bytes) -> bytes:
    """Return one member with one stored block (RFC 1952, RFC 1951 §3.2.4)."""
    stored = b"\x01" + struct.pack("<HH", len(data), len(data) ^ 0xFFFF) + data
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + stored + struct.pack("<II", zlib.crc32(data), len(data))


def zstd(data: bytes) -> bytes:
    """Return one frame with one raw block, its content size in the header (RFC 8878 §3.1.1)."""
    return (
        b"\x28\xb5\x2f\xfd\x60" + struct.pack("<H", len(data) - 256) + (len(data) << 3 | 1).to_bytes(3, "little") + data
    )


def lz4(*blocks: bytes) -> bytes:
    """Return one frame of uncompressed blocks without checksums; 0x82 is the header's checksum."""
    stored = b"".join(struct.pack("<I", len(data) | 1 << 31) + data for data in blocks)
    return b"\x04\x22\x4d\x18\x60\x40\x82" + stored + bytes(4)


def patched(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


def record_start(packets: list[Packet], index: int) -> int:
    """Return the offset of a packet's record in `pcap(packets)`."""
    return PCAP_HEADER + sum(RECORD_HEADER + len(frame) for _, frame in packets[:index])


def build() -> dict[str, bytes]:
    """Return all files by name."""
    packets = conversation()
    good, good_ng = pcap(packets), pcapng(packets)
    third, fourth, sixth = (record_start(packets, index) for index in (2, 3, 5))
    head_ng = section() + interface()
    first_three, last_two = b"".join(map(enhanced, packets[:3])), b"".join(map(enhanced, packets[4:]))
    nonsense = bytes((7 * i * i + 31 * i + 11) % 251 for i in range(600))
    # if_tsresol means nanoseconds; an option of 8,192 bytes follows in a block that ends before it.
    overrun = struct.pack("<HHB3xHH", 9, 1, 9, 14, 0x2000) + bytes(4)
    resolutions = (struct.pack("<HHB3xHH", 9, 1, 9, 0, 0), struct.pack(">HHB3xHH", 9, 1, 0x80 | 20, 0, 0))
    nanos = [enhanced(p, ticks=SECOND * 10**9 + p[0] * 1000) for p in packets]
    binary = [enhanced(p, ">", ticks=(SECOND << 20) + (p[0] << 20) // 10**6) for p in packets[3:]]
    return {
        "empty.pcap": b"",
        "only-a-header.pcap": good[:PCAP_HEADER],
        "cut-file-header.pcap": good[:20],
        "cut-record.pcap": good[:-20],
        "cut-record-header.pcap": good[: fourth + 7],
        "lying-captured-length.pcap": patched(good, third + 8, struct.pack("<I", 0x7FFFFFFF)),
        "captured-more-than-original.pcap": patched(good, fourth + 12, struct.pack("<I", 60)),
        "microseconds-out-of-range.pcap": patched(good, sixth + 4, struct.pack("<I", 1_281_000)),
        "wrong-version.pcap": patched(good, 4, struct.pack("<HH", 9, 9)),
        "nonsense.pcap": nonsense,
        "text.pcap": b"This is a note, not a capture.\n" * 8,
        "bad-block-length.pcapng": head_ng + first_three + enhanced(packets[3], length=8) + last_two,
        "trailer-differs.pcapng": head_ng + first_three + enhanced(packets[3], trailer=4096) + last_two,
        "undefined-interface.pcapng": head_ng + first_three + enhanced(packets[3], interface_id=7) + last_two,
        "option-overruns-its-block.pcapng": section() + interface(options=overrun) + b"".join(nanos),
        "unknown-blocks.pcapng": head_ng
        + block(0x0BAD, b"skip me")
        + first_three
        + block(0x80000B0B, b"")
        + enhanced(packets[3])
        + last_two,
        "cut-block.pcapng": good_ng[:-30],
        "two-sections.pcapng": section()
        + interface(options=resolutions[0])
        + b"".join(nanos[:3])
        + section(">")
        + interface(">", resolutions[1])
        + b"".join(binary),
        "cut.pcap.gz": gzip(good)[: 15 + fourth + 40],
        "wrong-checksum.pcap.gz": patched(gzip(good), len(gzip(good)) - 8, b"\xde\xad\xbe\xef"),
        "cut-zstd.pcap.zst": zstd(good)[: 10 + fourth + 40],
        "cut-lz4.pcap.lz4": lz4(good[:fourth], good[fourth:])[: 11 + fourth + 4 + 40],
        "not-gzip-inside.gz": gzip(nonsense),
        "options-cut-by-snaplen.pcap": pcap(conversation(MSS + SACK_PERMITTED + WINDOW_SCALE), snaplen=60),
        "tcp-header-cut-by-snaplen.pcap": pcap(packets, snaplen=50),
        "option-of-length-zero.pcap": pcap(conversation(MSS + b"\x08\0\x01\x01")),
        "big-endian-nanoseconds.pcap": pcap(packets, magic=0xA1B23C4D, order=">"),
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for name, data in build().items():
        (folder / name).write_bytes(data)
