"""Crafted captures, and waiting for their analysis."""

import gzip
import io
import struct
import time
from collections.abc import Iterable
from typing import Any

from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from scapy.utils import PcapWriter

CLIENT, SERVER = ("192.0.2.1", 40000), ("198.51.100.2", 80)
HOSTILE_NAME = "<script>alert(1)</script>.pcap"
SECRET = b"PASSWORD=hunter2"
API = "/api/v1"


def segment(time_s: float, source: tuple[str, int], flags: str, seq: int, ack: int, **fields: object) -> Packet:
    target = SERVER if source == CLIENT else CLIENT
    length = int(str(fields.pop("length", 0)))
    payload = Raw((SECRET * (length // len(SECRET) + 1))[:length])
    packet = (
        Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
        / IP(src=source[0], dst=target[0])
        / TCP(sport=source[1], dport=target[1], flags=flags, seq=seq, ack=ack, **fields)
    )
    packet = packet / payload if length else packet
    packet.time = 1_700_000_000 + time_s
    return packet


def zero_window_connection() -> list[Packet]:
    """One connection: 2,000 bytes from the client, then the server's window is 0 from 0.3 s to 2.8 s."""
    scale = [("MSS", 1000), ("WScale", 0)]
    return [
        segment(0.0, CLIENT, "S", 999, 0, window=8000, options=scale),
        segment(0.1, SERVER, "SA", 4999, 1000, window=2000, options=scale),
        segment(0.1, CLIENT, "A", 1000, 5000, window=8000),
        segment(0.2, CLIENT, "A", 1000, 5000, window=8000, length=1000),
        segment(0.2, CLIENT, "PA", 2000, 5000, window=8000, length=1000),
        segment(0.3, SERVER, "A", 5000, 3000, window=0),
        segment(2.8, SERVER, "A", 5000, 3000, window=2000),
        segment(2.9, CLIENT, "FA", 3000, 5000, window=8000),
        segment(3.0, SERVER, "FA", 5000, 3001, window=2000),
        segment(3.0, CLIENT, "A", 3001, 5001, window=8000),
    ]


def written(packets: Iterable[Packet]) -> bytes:
    """Return packets as a pcap."""
    file = io.BytesIO()
    writer = PcapWriter(file, linktype=1, sync=True)
    for packet in packets:
        writer.write(packet)
    return file.getvalue()


def capture_bytes() -> bytes:
    return written(zero_window_connection())


def many_connections(count: int) -> bytes:
    """Many connections of a SYN and its answer, a millisecond apart."""
    out = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)]
    for number in range(count):
        address = struct.pack(">I", 0x0A000000 + number)
        for ports, flags, seq in ((b"\x9c\x40\x00\x50", 2, 1), (b"\x00\x50\x9c\x40", 18, 9)):
            ends = (address, b"\xc6\x33\x64\x02") if flags == 2 else (b"\xc6\x33\x64\x02", address)
            ip = struct.pack(">BBHHHBBH", 0x45, 0, 40, number & 0xFFFF, 0x4000, 64, 6, 0) + ends[0] + ends[1]
            tcp = ports + struct.pack(">IIBBHHH", seq, 2 if flags == 18 else 0, 0x50, flags, 8000, 0, 0)
            data = b"\x02" * 12 + b"\x08\x00" + ip + tcp
            seconds, rest = divmod(number, 1000)
            out.append(struct.pack("<IIII", 1_700_000_000 + seconds, rest * 1000, len(data), len(data)) + data)
    return b"".join(out)


def bomb(unpacked_bytes: int) -> bytes:
    """Return a gzip file of a pcap with this many bytes of records: one block, repeated."""
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1)
    block = (struct.pack("<IIII", 1_700_000_000, 0, 65536, 65536) + bytes(65536)) * 160
    # RFC 1952 section 2.2: a gzip file is a series of members.
    return gzip.compress(head) + gzip.compress(block) * (unpacked_bytes // len(block) + 1)


def upload(client: Any, data: bytes, name: str = "zero.pcap", **query: Any) -> dict[str, Any]:
    """Upload a capture and return its entry."""
    answer = client.post(f"{API}/uploads", params={"name": name, **query}, content=data)
    assert answer.status_code == 202, answer.text
    entry: dict[str, Any] = answer.json()
    return entry


def settle(client: Any, capture_id: str) -> dict[str, Any]:
    """Wait until the analysis of a capture ends, successfully or not, and return its entry."""
    while True:
        entry: dict[str, Any] = client.get(f"{API}/captures/{capture_id}").json()
        if entry["status"] not in ("open", "queued", "running"):
            return entry
        time.sleep(0.05)


def analysed(client: Any, data: bytes, name: str = "zero.pcap") -> str:
    """Upload a capture, wait for its analysis, and return its id."""
    entry = settle(client, upload(client, data, name)["id"])
    assert entry["status"] == "done", entry
    return str(entry["id"])
