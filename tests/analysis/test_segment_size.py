"""The size of full segments is the one in use: allowed by the SYNs, or reduced by the path."""

from __future__ import annotations

import struct
from pathlib import Path

import dpkt
import pytest

import tcpwin
from tcpwin import Connection

MS, SECOND = 10**6, 10**9
A, B = (bytes([10, 0, 0, 1]), 40000), (bytes([10, 0, 0, 2]), 80)
FIN, SYN, PSH, ACK = dpkt.tcp.TH_FIN, dpkt.tcp.TH_SYN, dpkt.tcp.TH_PUSH, dpkt.tcp.TH_ACK
SYN_OPTIONS = struct.pack(">BBHBBB", 2, 4, 1460, 3, 3, 7) + b"\x01"
ROUND_TRIP_NS = 50 * MS
SEGMENTS_A_ROUND = 10
NANOSECOND_MAGIC = 0xA1B23C4D


class Flow:
    """Packets of one connection, captured near the sender."""

    def __init__(self) -> None:
        self.packets: list[tuple[int, bytes]] = []
        self.ids = {A: 1, B: 1000}
        self.seq, self.now_ns = 1001, 2 * ROUND_TRIP_NS
        self.add(0, A, SYN, 1000, 0, options=SYN_OPTIONS)
        self.add(ROUND_TRIP_NS, B, SYN | ACK, 5000, 1001, options=SYN_OPTIONS)
        self.add(ROUND_TRIP_NS + MS, A, ACK, 1001, 5001)

    def add(
        self,
        time_ns: int,
        source: tuple[bytes, int],
        flags: int,
        seq: int,
        ack: int,
        length: int = 0,
        options: bytes = b"",
    ) -> None:
        target = B if source == A else A
        self.ids[source] += 1
        header = {"sport": source[1], "dport": target[1], "seq": seq, "ack": ack, "flags": flags, "win": 60_000}
        tcp = dpkt.tcp.TCP(**header, off=5 + len(options) // 4, opts=options, data=bytes(length))
        ip = dpkt.ip.IP(src=source[0], dst=target[0], p=6, id=self.ids[source], ttl=64, data=tcp)
        self.packets.append((SECOND + time_ns, bytes(dpkt.ethernet.Ethernet(data=ip))))

    def rounds(self, count: int, size: int, *, last: int | None = None, flags: int = ACK) -> None:
        """Flights of equal segments, one per round trip; the last segment of each may have another size."""
        for _ in range(count):
            for position in range(SEGMENTS_A_ROUND):
                is_last = position == SEGMENTS_A_ROUND - 1 and last is not None
                length = last if is_last and last is not None else size
                sent_ns = self.now_ns + position * 100_000
                self.add(sent_ns, A, flags, self.seq, 5001, length)
                self.seq += length
                self.add(sent_ns + ROUND_TRIP_NS - 50_000, B, ACK, 5001, self.seq)
            self.now_ns += ROUND_TRIP_NS

    def analyze(self, folder: Path) -> Connection:
        path = folder / "flow.pcap"
        header = struct.pack("<IHHiIII", NANOSECOND_MAGIC, 2, 4, 0, 0, 65_535, 1)
        records = (
            struct.pack("<IIII", *divmod(time_ns, SECOND), len(packet), len(packet)) + packet
            for time_ns, packet in sorted(self.packets)
        )
        path.write_bytes(header + b"".join(records))
        [connection] = tcpwin.analyze(path)
        return connection


@pytest.mark.parametrize("rounds", [0, 30], ids=["tunnel", "path-that-comes-to-carry-less"])
def test_bulk_in_small_segments_is_not_the_application(tmp_path: Path, rounds: int) -> None:
    flow = Flow()
    flow.rounds(rounds, 1460)
    flow.rounds(60, 1388)
    connection = flow.analyze(tmp_path)
    assert connection.a_to_b.mss_bytes == 1388
    assert connection.verdict.limit != "sender_application"


def test_a_path_that_comes_to_carry_more_again(tmp_path: Path) -> None:
    flow = Flow()
    flow.rounds(30, 1388)
    flow.rounds(30, 1460)
    connection = flow.analyze(tmp_path)
    assert connection.a_to_b.mss_bytes == 1460


def test_offload_sends_multiples_of_it(tmp_path: Path) -> None:
    flow = Flow()
    for _ in range(30):
        flow.rounds(1, 1388)
        flow.rounds(1, 4 * 1388)
    assert flow.analyze(tmp_path).a_to_b.mss_bytes == 1388


def test_messages_of_one_size_are_the_application(tmp_path: Path) -> None:
    flow = Flow()
    for _ in range(60):
        flow.add(flow.now_ns, A, PSH | ACK, flow.seq, 5001, 1388)
        flow.seq += 1388
        flow.add(flow.now_ns + ROUND_TRIP_NS, B, ACK, 5001, flow.seq)
        flow.now_ns += 2 * ROUND_TRIP_NS
    connection = flow.analyze(tmp_path)
    assert connection.a_to_b.mss_bytes == 1460
    assert connection.verdict.limit == "sender_application"


def test_segments_between_full_ones_do_not_set_the_size(tmp_path: Path) -> None:
    flow = Flow()
    flow.rounds(40, 1460, last=1000)
    assert flow.analyze(tmp_path).a_to_b.mss_bytes == 1460
