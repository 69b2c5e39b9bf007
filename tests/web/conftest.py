"""A folder of captures with one crafted connection whose numbers are known, and the service that shows it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from scapy.utils import wrpcap

from tcpwin_web import create_app

CLIENT, SERVER = ("192.0.2.1", 40000), ("198.51.100.2", 80)
HOSTILE_NAME = "<script>alert(1)<_script>.pcap"


def segment(time_s: float, source: tuple[str, int], flags: str, seq: int, ack: int, **fields: object) -> Packet:
    target = SERVER if source == CLIENT else CLIENT
    payload = Raw(b"x" * int(str(fields.pop("length", 0))))
    packet = (
        Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
        / IP(src=source[0], dst=target[0])
        / TCP(sport=source[1], dport=target[1], flags=flags, seq=seq, ack=ack, **fields)
    )
    packet = packet / payload if payload.load else packet
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


@pytest.fixture(scope="session")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("captures")
    wrpcap(str(folder / "Zero Window.pcap"), zero_window_connection())
    wrpcap(str(folder / HOSTILE_NAME), zero_window_connection())
    (folder / "nonsense.pcap").write_bytes(b"this is not a capture at all")
    (folder / "notes.txt").write_text("not a capture either")
    return folder


@pytest.fixture
def client(captures: Path) -> Iterator[TestClient]:
    with TestClient(create_app([captures]), base_url="http://localhost") as client:
        yield client
