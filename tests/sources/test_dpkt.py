"""dpkt readers give the same results as the file that they read."""

import io
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dpkt
from analysis.bundled import READABLE, TRUTHS, WHOLE, analyze, name_of, plain_bytes, rows_of
from cases import all_cases

import tcpwin

READERS = {"pcap": dpkt.pcap.Reader, "pcapng": dpkt.pcapng.Reader}
SOUND = [path for path in READABLE if not TRUTHS[path]["warnings"] and TRUTHS[path]["packets"]]
# dpkt reads only the first of its sections.
MISREAD = {"two-sections.pcapng"}
READ_ALIKE = [path for path in SOUND if path.name not in MISREAD]


def rows(analysis: tcpwin.Analysis) -> list[dict[str, Any]]:
    return list(analysis.segments().rows())


@all_cases("universal", [True, False], ids=["UniversalReader", "Reader"])
@all_cases("path", READ_ALIKE, ids=name_of, of=6)
def test_reader_gives_what_the_file_gives(path: Path, universal: bool, tool: Callable[[str], str]) -> None:
    file = io.BytesIO(plain_bytes(path, tool))
    reader = dpkt.pcap.UniversalReader(file) if universal else READERS[TRUTHS[path]["format"]](file)
    analysis = tcpwin.analyze(reader)
    assert rows(analysis) == rows_of(path)
    assert rows(analysis) == rows_of(path)
    for connection, expected in zip(analysis, analyze(path), strict=True):
        assert (connection.a_to_b, connection.b_to_a) == (expected.a_to_b, expected.b_to_a)
    assert analysis.name == "dpkt reader"


def test_captures_cut_by_the_snapshot_length_are_among_them() -> None:
    """Truncated: capinfos -l shows 96, and the application wrote 6,000,000 bytes into a file of 9 % of that size."""
    path = next(path for path in WHOLE if path.name == "slow-reader.pcap.gz")
    assert path in READ_ALIKE
    assert path.stat().st_size < 600_000
    assert analyze(path).connections[0].b_to_a.payload_bytes == 6_000_000


def test_cut_packet_keeps_its_length_on_the_wire() -> None:
    ip = dpkt.ip.IP(src=bytes([10, 0, 0, 1]), dst=bytes([10, 0, 0, 2]), p=6)
    ip.data = dpkt.tcp.TCP(sport=1, dport=2, seq=3, flags=dpkt.tcp.TH_ACK, data=bytes(1000))
    ip.len = len(ip)
    packet = bytes(dpkt.ethernet.Ethernet(data=ip))
    assert len(packet) == 14 + 20 + 20 + 1000
    pcap = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 64, 1) + struct.pack("<IIII", 5, 6, 64, 1054) + packet[:64]
    [row] = rows(tcpwin.analyze(dpkt.pcap.Reader(io.BytesIO(pcap))))
    assert (row["time_ns"], row["length"]) == (5_000_006_000, 1000)


def test_reader_without_packets() -> None:
    pcap = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    analysis = tcpwin.analyze(dpkt.pcap.Reader(io.BytesIO(pcap)))
    assert (len(analysis), analysis.capture.packets) == (0, 0)


def test_capture_list_is_not_empty() -> None:
    assert len(READ_ALIKE) >= 20
