"""Anonymized slices and reports: no address, name or payload is left; prefixes, ports and verdicts stay."""

import io
import struct
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cli.command import CAPTURES, refused, tcpwin
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, TCP, IPOption_RR
from scapy.layers.inet6 import IPv6, IPv6ExtHdrHopByHop
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Raw
from scapy.utils import PcapNgReader, PcapWriter
from spread import some_by_day

import tcpwin as library
from tcpwin.errors import OutputError
from tcpwin.render import anonymized
from tcpwin.render.wireshark.anonymous import SHIFTED_TO_NS, Anonymizer, prove_same

SECRET = b"PASSWORD=hunter2"
CLIENT, SERVER, CLIENT6, SERVER6 = "192.0.2.17", "192.0.2.99", "2001:db8::17", "2001:db8:1::2"
KEY = bytes(range(32))


def common_bits(one: str, other: str) -> int:
    a, b = ip_address(one), ip_address(other)
    return int(a.max_prefixlen - (int(a) ^ int(b)).bit_length())


def rewritten(packet: Packet, link_type: int = 1) -> Packet:
    """A packet as it is written, and its checksums as scapy computes them."""
    made = Anonymizer(KEY).packet(link_type, bytearray(bytes(packet)))
    return (Ether if link_type == 1 else IP)(bytes(made))


@pytest.mark.parametrize(
    "network",
    [
        IP(src=CLIENT, dst=SERVER),
        IP(src=CLIENT, dst=SERVER, options=[IPOption_RR(length=7, routers=[CLIENT])]),
        IPv6(src=CLIENT6, dst=SERVER6),
        IPv6(src=CLIENT6, dst=SERVER6) / IPv6ExtHdrHopByHop(),
    ],
    ids=["IPv4", "record route", "IPv6", "extension"],
)
@pytest.mark.parametrize("vlan", [False, True])
def test_addresses_are_replaced_and_checksums_stay_right(network: Packet, vlan: bool) -> None:
    ether = Ether(src="02:11:22:33:44:55", dst="02:11:22:33:44:66")
    # ADD_ADDR of Multipath TCP (RFC 8684 section 3.4.1).
    announced = (30, b"\x30\x01" + ip_address(CLIENT).packed)
    segment = TCP(sport=40000, dport=443, flags="A", seq=7, ack=9, options=[announced, ("Timestamp", (5, 6))])
    packet = ether / Dot1Q(vlan=7) / network / segment if vlan else ether / network / segment
    before = Ether(bytes(packet / Raw(SECRET)))
    made = Anonymizer(KEY).packet(1, bytearray(bytes(before)))
    data = bytes(made)
    for address in (CLIENT, SERVER, CLIENT6, SERVER6):
        assert ip_address(address).packed not in data
    for hardware in ("021122334455", "021122334466"):
        assert bytes.fromhex(hardware) not in data
    assert SECRET not in data
    # With the payload the checksums are those that the hosts would have sent.
    whole = Ether(data + SECRET)
    again = Ether(data + SECRET)
    layer = IP if IP in whole else IPv6
    if layer is IP:
        del again[IP].chksum
    del again[TCP].chksum
    assert bytes(again) == bytes(Ether(bytes(again)))
    assert Ether(bytes(again))[TCP].chksum == whole[TCP].chksum
    assert layer is IPv6 or Ether(bytes(again))[IP].chksum == whole[IP].chksum
    assert (whole[TCP].sport, whole[TCP].dport, whole[TCP].seq) == (40000, 443, 7)
    assert common_bits(whole[layer].src, whole[layer].dst) == common_bits(before[layer].src, before[layer].dst)


@given(st.sampled_from((0, 1, 12, 101, 113, 276, 147)), st.binary(max_size=120))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_taken(link_type: int, data: bytes) -> None:
    assert len(Anonymizer(KEY).packet(link_type, bytearray(data))) <= len(data)


def test_tunnels_keep_nothing() -> None:
    inner = IP(src=CLIENT, dst=SERVER) / TCP()
    outer = Ether() / IP(src=CLIENT, dst=SERVER, proto=4) / inner
    assert Anonymizer(KEY).packet(1, bytearray(bytes(outer))) == b""


@pytest.mark.parametrize(
    "path", some_by_day([*sorted(CAPTURES.glob("wild/*.pcap*")), *sorted(CAPTURES.glob("lab/*.pcap*"))])
)
def test_verdicts_stay(path: Path) -> None:
    with anonymized(library.analyze(path), shift_times=True) as (hidden, _, made):
        assert made.capture.first_time_ns == SHIFTED_TO_NS
        assert len(hidden.read_bytes()) > 100


def test_a_changed_verdict_is_an_error() -> None:
    slow, lossy = (
        library.analyze(CAPTURES / name) for name in ("lab/slow-reader.pcap.gz", "lab/loss-1-percent.pcap.gz")
    )
    with pytest.raises(OutputError, match="connection 0 has another verdict"):
        prove_same(slow, lossy)
    with pytest.raises(OutputError, match="in tunnels"):
        prove_same(library.analyze(CAPTURES / "wild/many-short.pcap.gz"), slow)


def written(folder: Path) -> Path:
    """A capture with a name in its comment, an address in another packet, and payload."""
    path = folder / "secretname.pcap"
    ends = [(CLIENT, SERVER, 40000, 80), (SERVER, CLIENT, 80, 40000)]
    steps: list[tuple[int, str, int, int, Any]] = [
        (0, "S", 99, 0, b""),
        (1, "SA", 499, 100, b""),
        (0, "A", 100, 500, b""),
        (0, "PA", 100, 500, SECRET * 20),
        (1, "A", 500, 100 + 20 * len(SECRET), b""),
    ]
    with PcapWriter(str(path), linktype=1) as writer:
        for number, (end, flags, seq, ack, payload) in enumerate(steps):
            source, target, sport, dport = ends[end]
            packet = Ether(src="02:11:22:33:44:55", dst="02:11:22:33:44:66") / IP(src=source, dst=target)
            packet = packet / TCP(sport=sport, dport=dport, flags=flags, seq=seq, ack=ack) / Raw(payload)
            packet.time = 1_700_000_000 + number / 10
            writer.write(packet)
        writer.write(Ether() / IP(src=CLIENT, dst=SERVER, proto=17) / Raw(SECRET))
    return path


def test_the_commands(tmp_path: Path) -> None:
    capture = written(tmp_path)
    out, report, page = (tmp_path / name for name in ("out.pcapng", "out.json", "out.html"))
    assert tcpwin("slice", capture, "--connection", 0, "--anonymize", "--shift-times", "-o", out).returncode == 0
    assert tcpwin("report", capture, "--anonymize", "-o", report).returncode == 0
    assert tcpwin("report", capture, "--anonymize", "-o", page).returncode == 0
    with PcapNgReader(str(out)) as reader:
        packets = list(reader)
    assert [float(packet.time) for packet in packets[:2]] == [SHIFTED_TO_NS / 1e9, SHIFTED_TO_NS / 1e9 + 0.1]
    for path in (out, report, page):
        data = path.read_bytes()
        for hidden in (SECRET, b"secretname", CLIENT.encode(), SERVER.encode(), ip_address(CLIENT).packed):
            assert hidden not in data, (path, hidden)
    assert library.analyze(out).connections[0].b.port == 80
    assert "--shift-times goes with --anonymize" in refused(
        "slice", capture, "--connection", 0, "--shift-times", "-o", out, status=2
    )


def test_a_packet_without_headers_keeps_time_and_length(tmp_path: Path) -> None:
    with anonymized(library.analyze(written(tmp_path))) as (path, _, _made):
        data = path.read_bytes()
    file = io.BytesIO(data)
    found = []
    while len(head := file.read(8)) == 8:
        kind, length = struct.unpack("<II", head)
        body = file.read(length - 8)
        if kind == 6:
            found.append(struct.unpack_from("<5I", body)[3:])
    assert found[-1] == (0, 14 + 20 + len(SECRET))
