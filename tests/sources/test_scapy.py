"""scapy packets give the same results as their file."""

import io
import struct
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from analysis.bundled import READABLE, TRUTHS, analyze, name_of, plain_bytes, rows_of
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Dot3, Ether
from scapy.packet import Raw
from scapy.plist import PacketList
from scapy.utils import EDecimal, PcapReader, rdpcap
from spread import some_by_day

import tcpwin

ETHERNET = 1
# scapy misreads if_tsresol 0x94, units of 2^-20 s: the second section is dated January 1970.
MISREAD = {"two-sections.pcapng"}
# In damaged captures scapy reads other packets than those before the damage.
AS_FILE = [
    path
    for path in READABLE
    if not TRUTHS[path]["warnings"]
    and set(TRUTHS[path]["link_types"]) == {ETHERNET}
    and TRUTHS[path]["packets"]
    and path.name not in MISREAD
]
COOKED = [path for path in READABLE if path.name in ("cooked-any.pcap.gz", "forwarded-any.pcap.zst")]


def same_rows(analysis: tcpwin.Analysis, path: Path) -> None:
    assert list(analysis.segments().rows()) == rows_of(path)
    assert len(analysis) == len(analyze(path))


@pytest.mark.parametrize("path", [*some_by_day(AS_FILE, of=12, first=2), *some_by_day(COOKED, of=4)], ids=name_of)
def test_rdpcap_gives_what_the_file_gives(path: Path, tool: Callable[[str], str]) -> None:
    packets = rdpcap(io.BytesIO(plain_bytes(path, tool)))
    analysis = tcpwin.analyze(packets)
    same_rows(analysis, path)
    for connection, expected in zip(analysis, analyze(path), strict=True):
        assert (connection.a_to_b, connection.b_to_a) == (expected.a_to_b, expected.b_to_a)
    assert analysis.name == "scapy packets"


def segment(**more: Any) -> Ether:
    fields = {"sport": 40000, "dport": 80, "seq": 7, "ack": 9, "flags": "A", "window": 502} | more
    packet = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(src="10.0.0.1", dst="10.0.0.2")
    packet = packet / TCP(**fields) / Raw(b"hello")
    packet.time = EDecimal("1600000000.123456789")
    return packet


def test_one_packet() -> None:
    [row] = tcpwin.analyze(segment()).segments().rows()
    expected = {"frame": 1, "time_ns": 1_600_000_000_123_456_789, "src": "10.0.0.1", "sport": 40000, "length": 5}
    assert {name: row[name] for name in expected} == expected
    assert (row["seq"], row["ack"], row["flags"], row["window_raw"]) == (7, 9, 0x10, 502)


@pytest.mark.parametrize("wrap", [list, tuple, PacketList, iter])
def test_packets_in_any_collection(wrap: Callable[[list[Any]], Any]) -> None:
    packets = [segment(seq=7), segment(seq=12)]
    packets[1].time += 1
    analysis = tcpwin.analyze(wrap(packets))
    assert [row["seq"] for row in analysis.segments().rows()] == [7, 12]
    assert [row["seq"] for row in analysis.segments().rows()] == [7, 12]
    assert analysis.capture.duration_ns == 1_000_000_000


def test_reader_of_a_file() -> None:
    path = next(path for path in READABLE if path.name == "keep-alive.pcap")
    with PcapReader(str(path)) as reader:
        same_rows(tcpwin.analyze(reader), path)


def test_packets_that_begin_with_ip() -> None:
    packets = [segment()[IP], IPv6(src="2001:db8::1", dst="2001:db8::2") / TCP(sport=1, dport=2, seq=3)]
    rows = list(tcpwin.analyze(packets).segments().rows())
    assert [(row["src"], row["sport"]) for row in rows] == [("10.0.0.1", 40000), ("2001:db8::1", 1)]


def test_link_types_together() -> None:
    analysis = tcpwin.analyze([segment(), segment()[IP]])
    assert sorted(interface.link_type for interface in analysis.capture.files[0].interfaces) == [1, 101]
    assert analysis.capture.segments == 2


def test_packets_without_tcp_are_counted() -> None:
    packets = [segment(), Ether() / IP() / UDP(), Ether() / ARP()]
    analysis = tcpwin.analyze(packets)
    assert (analysis.capture.packets, analysis.capture.segments, analysis.capture.not_tcp) == (3, 1, 2)


@pytest.mark.parametrize(
    ("time", "time_ns"), [(1_600_000_000.123456, 1_600_000_000_123_456_000), (Decimal("1.000000001"), 1_000_000_001)]
)
def test_a_float_gives_microseconds_and_a_decimal_is_exact(time: float | Decimal, time_ns: int) -> None:
    packet = segment()
    packet.time = time
    [row] = tcpwin.analyze(packet).segments().rows()
    assert row["time_ns"] == time_ns


def test_cut_packet_keeps_its_length_on_the_wire() -> None:
    """96 of 1554 bytes captured: 14 of Ethernet, 20 of IP, 20 of TCP and 1500 of payload, by the IP header."""
    whole = bytes(Ether() / IP(src="10.0.0.1", dst="10.0.0.2") / TCP(flags="A") / Raw(bytes(1500)))
    assert len(whole) == 1554
    pcap = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 96, 1)
    pcap += struct.pack("<IIII", 1, 0, 96, 1554) + whole[:96]
    [packet] = rdpcap(io.BytesIO(pcap))
    analysis = tcpwin.analyze(packet)
    [row] = analysis.segments().rows()
    assert row["length"] == 1500
    assert analysis.capture.packets_snapped == 1


def test_payload_beyond_the_headers_is_counted_but_not_stored() -> None:
    packet = Ether() / IP(src="10.0.0.1", dst="10.0.0.2") / TCP(flags="A") / Raw(bytes(60_000))
    [row] = tcpwin.analyze(packet).segments().rows()
    assert row["length"] == 60_000


@pytest.mark.parametrize(
    ("packets", "message"),
    [
        ([segment(), b"bytes"], "packet 2 is a bytes, not a scapy packet"),
        ([TCP()], "scapy's TCP has no link type; begin packets with Ether or IP"),
    ],
)
def test_objects_that_are_no_packets_are_errors(packets: list[Any], message: str) -> None:
    with pytest.raises(tcpwin.SourceError, match=message):
        tcpwin.analyze(packets)


def test_other_link_layers_are_named_by_number() -> None:
    analysis = tcpwin.analyze([Dot3() / Raw(b"x" * 60)])
    assert (analysis.capture.packets, analysis.capture.segments) == (1, 0)


def test_capture_list_is_not_empty() -> None:
    assert len(AS_FILE) >= 18
    assert {"loss-1-percent.pcap.gz", "many-short.pcap.gz"} <= {path.name for path in AS_FILE}
