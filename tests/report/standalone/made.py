"""Captures made for reports: empty, one packet, one-way, many connections, a week, and names full of markup."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

from craft.broken import ACK, FIN, MSS, PSH, SYN, WINDOW_SCALE, segment

HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
START_S = 1_600_000_000
WEEK_S = 7 * 86_400
MARKUP = """<img src=x onerror="window.bad=1"><script>window.bad=2</script>"""


def write_pcap(path: Path, packets: Iterable[tuple[float, bytes]]) -> Path:
    """Write frames with their seconds since `START_S`."""
    with path.open("wb") as file:
        file.write(HEADER)
        for seconds, frame in packets:
            micros = round(seconds * 1e6)
            file.write(struct.pack("<IIII", START_S + micros // 10**6, micros % 10**6, len(frame), len(frame)) + frame)
    return path


def handshake(at: float = 0.0) -> list[tuple[float, bytes]]:
    """Return SYN, SYN/ACK, ACK over 40 ms."""
    options = MSS + WINDOW_SCALE
    return [
        (at, segment(from_client=True, seq=999, ack=0, flags=SYN, window=65535, options=options)),
        (at + 0.04, segment(from_client=False, seq=4999, ack=1000, flags=SYN | ACK, window=65535, options=options)),
        (at + 0.04, segment(from_client=True, seq=1000, ack=5000, flags=ACK, window=512)),
    ]


def one_packet(path: Path) -> Path:
    return write_pcap(path, handshake()[:1])


def one_way(path: Path) -> Path:
    """Write unanswered data of the client."""
    data = [
        (0.1 + place / 100, segment(from_client=True, seq=1000 + 1000 * place, ack=5000, flags=PSH | ACK, window=512,
                                    payload=bytes(1000)))
        for place in range(20)
    ]  # fmt: skip
    return write_pcap(path, [handshake()[0], *data])


def of_a_week(path: Path) -> Path:
    """Write a connection that sends a word every hour, and closes."""
    packets, seq = handshake(), 1000
    for hour in range(7 * 24):
        at = 1.0 + hour * 3600
        packets += [
            (at, segment(from_client=True, seq=seq, ack=5000, flags=PSH | ACK, window=512, payload=bytes(100))),
            (at + 0.04, segment(from_client=False, seq=5000, ack=seq + 100, flags=ACK, window=512)),
        ]
        seq += 100
    packets += [
        (WEEK_S, segment(from_client=True, seq=seq, ack=5000, flags=FIN | ACK, window=512)),
        (WEEK_S + 0.04, segment(from_client=False, seq=5000, ack=seq + 1, flags=FIN | ACK, window=512)),
    ]
    return write_pcap(path, packets)


def of_many(path: Path, count: int) -> Path:
    """Write many refused connections, from as many ports and addresses."""

    def packets() -> Iterable[tuple[float, bytes]]:
        for number in range(count):
            address = bytes([10, 1 + number // 65_536, number // 256 % 256, number % 256])
            port = 1024 + number % 60_000
            yield number / 1000, _bare(address, bytes([10, 0, 0, 2]), port, 9000, 999, 0, SYN)
            yield number / 1000 + 0.0001, _bare(bytes([10, 0, 0, 2]), address, 9000, port, 0, 1000, 0x14)

    return write_pcap(path, packets())


def _bare(src: bytes, dst: bytes, sport: int, dport: int, seq: int, ack: int, flags: int) -> bytes:
    """Return a frame without options; its unchecked checksums are zero."""
    tcp = struct.pack(">HHIIHHHH", sport, dport, seq, ack, 5 << 12 | flags, 65535, 0, 0)
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 40, 1, 0x4000, 64, 6, 0) + src + dst
    return b"\x02\0\0\0\0\x0b\x02\0\0\0\0\x0a\x08\x00" + ip + tcp


def hostile(folder: Path) -> tuple[Path, list[tuple[str, Path]]]:
    """Write a capture and snapshots with markup as names, comments and texts; return the capture and its host with
    file.
    """
    markup = MARKUP.replace("/", "")
    frames = [
        *handshake(),
        (0.1, segment(from_client=True, seq=1000, ack=5000, flags=PSH | ACK, window=512, payload=MARKUP.encode())),
        (0.14, segment(from_client=False, seq=5000, ack=1000 + len(MARKUP), flags=ACK, window=512,
                       options=b"\xfd\x10<script>bad</s")),
    ]  # fmt: skip
    capture = folder / f"{markup}.pcapng"
    capture.write_bytes(_pcapng(frames, MARKUP))
    settings = folder / f"sysctl{markup}.txt"
    settings.write_text(f"net.ipv4.tcp_congestion_control = {MARKUP}\nnet.ipv4.tcp_{markup} = 1\n")
    sockets = folder / f"ss{markup}.txt"
    sockets.write_text(
        "# 2020-09-13T12:26:40.100000000\n"
        "State Recv-Q Send-Q Local Address:Port Peer Address:Port\n"
        f'ESTAB 0 0 10.0.0.1:40000 10.0.0.2:9000 users:(("{markup}",pid=1,fd=3))\n'
        f"\t {markup} cubic wscale:7,7 rto:204 rtt:40/20 mss:1460 cwnd:10 bytes_sent:63 bytes_acked:64\n"
    )
    return capture, [(markup, settings), (markup, sockets)]


def _pcapng(frames: list[tuple[float, bytes]], comment: str) -> bytes:
    def option(code: int, value: bytes) -> bytes:
        return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)

    def block(kind: int, body: bytes) -> bytes:
        length = 12 + len(body)
        return struct.pack("<II", kind, length) + body + struct.pack("<I", length)

    said, end = comment.encode(), bytes(4)
    out = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1) + option(1, said) + option(4, said) + end)
    out += block(1, struct.pack("<HHI", 1, 0, 65535) + option(2, said) + option(3, said) + end)
    for seconds, frame in frames:
        ticks = START_S * 10**6 + round(seconds * 1e6)
        head = struct.pack("<IIIII", 0, ticks >> 32, ticks & 0xFFFFFFFF, len(frame), len(frame))
        out += block(6, head + frame + bytes(-len(frame) % 4) + option(1, said) + end)
    return out
