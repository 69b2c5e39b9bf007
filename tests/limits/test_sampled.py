"""sFlow samples are not a capture: gaps between samples look like loss, and nothing is certain.

Every fifth packet of a lab capture, as an sFlow agent sends its header to the collector (sFlow version 5, flow samples
with raw packet headers of 128 bytes).
"""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from cli.command import tcpwin as run
from stories import incomplete

import tcpwin

CAPTURES = Path(__file__).resolve().parents[2] / "captures" / "lab"
ONE_IN, HEADER_BYTES, SFLOW_PORT = 5, 128, 6343


def datagram(number: int, packet: bytes) -> bytes:
    """Wrap an Ethernet frame's sample in a datagram."""
    header = packet[:HEADER_BYTES] + bytes(-len(packet[:HEADER_BYTES]) % 4)
    record = struct.pack(">IIII", 1, len(packet), 0, len(packet[:HEADER_BYTES])) + header
    records = struct.pack(">II", 1, len(record)) + record
    sample = struct.pack(">IIIIIIII", number, 1, ONE_IN, number * ONE_IN, 0, 1, 2, 1) + records
    agent = struct.pack(">II4sIIII", 5, 1, b"\x0a\0\0\x09", 0, number, 1000, 1)
    body = agent + struct.pack(">II", 1, len(sample)) + sample
    udp = struct.pack(">HHHH", 50_000, SFLOW_PORT, 8 + len(body), 0) + body
    ip = struct.pack(
        ">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), number & 0xFFFF, 0, 64, 17, 0, b"\x0a\0\0\x09", b"\x0a\0\0\x08"
    )
    return bytes(12) + b"\x08\0" + ip + udp


def sampled(folder: Path, name: str) -> tcpwin.Analysis:
    capture = incomplete.read(CAPTURES / name)
    data = capture.header
    for number, record in enumerate(capture.records[::ONE_IN]):
        packet = datagram(number, record.packet)
        data += record.head[:8] + struct.pack("<II", len(packet), len(packet)) + packet
    path = folder / "samples.pcap"
    path.write_bytes(data)
    return tcpwin.analyze(path)


@pytest.mark.parametrize("name", ["loss-1-percent.pcap.gz", "slow-reader.pcap.gz", "window-scaling.pcap.gz"])
def test_nothing_is_sure_of_samples(tmp_path: Path, name: str) -> None:
    analysis = sampled(tmp_path, name)
    capture = analysis.capture
    assert capture.sampled_segments == capture.segments > 500
    assert capture.connections_sampled == len(analysis) == 1
    [connection] = analysis.connections
    assert connection.sampled
    assert connection.verdict.limit == "capture"
    assert connection.verdict.confidence == "possible"
    assert connection.verdict.owner == "nobody"
    for budget in connection.budget.values():
        assert budget.largest == "unknown"
        assert budget.share("unknown") == 1.0
    assert not connection.findings
    assert {event.confidence for event in connection.events if event.cause} <= {"possible"}


def test_it_is_said_first(tmp_path: Path) -> None:
    sampled(tmp_path, "loss-1-percent.pcap.gz")
    told = run("analyze", tmp_path / "samples.pcap").stdout.decode()
    assert "quality  1 connection captured in samples (sFlow)" in told
    paragraph = " ".join(told.split())
    assert "Not known what limited it" in paragraph
    assert "holds only samples" in paragraph


def test_a_capture_has_none() -> None:
    analysis = tcpwin.analyze(CAPTURES / "loss-1-percent.pcap.gz")
    assert analysis.capture.sampled_segments == analysis.capture.connections_sampled == 0
    assert not analysis.connections[0].sampled
