"""Frames that tcpwin does not understand are counted and named, and the capture is not called complete."""

from __future__ import annotations

from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Packet, Raw

import tcpwin
from tcpwin.analysis import Capture
from tcpwin.render import WHOLE, quality_remarks, render


def captured(*packets: Packet) -> Capture:
    """Return a capture of two packets a second apart."""
    timed = [packet.copy() for packet in packets]
    for second, packet in enumerate(timed):
        packet.time = second
    return tcpwin.analyze(timed).capture


def quality(*packets: Packet) -> list[str]:
    return quality_remarks(captured(*packets))


SEGMENT = Ether() / IP(src="10.0.0.1", dst="10.0.0.2", id=1) / TCP(sport=40000, dport=80, flags="S", seq=1)
PRECISION_TIME = Ether(type=0x88F7) / Raw(bytes(44))
VENDOR_TAG = Ether() / Dot1Q(vlan=5, type=0x8899) / Raw(bytes(40))


def test_frames_that_are_not_understood_are_named_with_their_number() -> None:
    capture = captured(SEGMENT, PRECISION_TIME, VENDOR_TAG, PRECISION_TIME)
    assert (capture.not_tcp, capture.unread) == (3, 3)
    assert capture.unread_kinds == (("EtherType 0x88f7", 2), ("EtherType 0x8899", 1))
    [remark] = quality_remarks(capture)
    assert "2 frames of EtherType 0x88f7, 1 frame of EtherType 0x8899" in remark


def test_a_capture_with_such_frames_is_not_said_to_be_whole() -> None:
    assert WHOLE not in render(tcpwin.analyze([SEGMENT, PRECISION_TIME]))
    assert WHOLE in render(tcpwin.analyze([SEGMENT]))


def test_known_other_protocols_are_not_remarked_on() -> None:
    discovery = Ether(type=0x88CC) / Raw(bytes(46))
    assert quality(SEGMENT, Ether() / ARP(), Ether() / IP() / UDP(), discovery) == []


def test_kinds_beyond_the_first_are_counted_together() -> None:
    [remark] = quality(*(Ether(type=0xA000 + kind) / Raw(bytes(46)) for kind in range(11)))
    assert remark.endswith("3 frames of other kinds")
