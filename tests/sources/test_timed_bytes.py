"""Pairs of seconds and bytes give the same results as their file."""

import io
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import dpkt
import pytest
from analysis.bundled import WHOLE, name_of, plain_bytes, rows_of
from scapy.layers.inet import IP, TCP
from scapy.layers.inet6 import IPv6

import tcpwin

FRAMES = [path for path in WHOLE if path.name in ("http-download.pcapng", "slow-reader.pcap.gz", "http-ipv6.pcap.zst")]


@pytest.mark.parametrize("path", FRAMES, ids=name_of)
def test_pairs_give_what_the_file_gives(path: Path, tool: Callable[[str], str]) -> None:
    pairs = list(dpkt.pcap.UniversalReader(io.BytesIO(plain_bytes(path, tool))))
    analysis = tcpwin.analyze(pairs)
    assert list(analysis.segments().rows()) == rows_of(path)
    assert analysis.name == "packets"


@pytest.mark.parametrize(
    "layer", [IP(src="10.0.0.1", dst="10.0.0.2"), IPv6(src="fd00::1", dst="fd00::2")], ids=["4", "6"]
)
def test_packets_of_ip_need_no_frame(layer: IP | IPv6) -> None:
    packet = bytes(layer / TCP(sport=40000, dport=80, flags="S"))
    [connection] = tcpwin.analyze([(Decimal("1600000000.123456789"), packet)])
    assert connection.b.port == 80
    assert connection.start_ns == 1_600_000_000_123_456_789


def test_something_else_among_the_pairs() -> None:
    with pytest.raises(tcpwin.SourceError, match="packet 2 is a str, not a pair of seconds and bytes"):
        tcpwin.analyze([(1.0, b"\0" * 60), "no"])
