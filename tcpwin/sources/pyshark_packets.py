"""pyshark packets, from a `FileCapture` or `LiveCapture` that keeps their bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

from tcpwin.errors import SourceError
from tcpwin.sources.pcapng import RawPacket, nanoseconds

LINK_TYPES = {1: 1, 7: 101, 15: 0, 20: 105, 25: 113, 129: 228, 130: 229, 210: 276}
"""pcap's link types by Wireshark's numbers (``frame.encap_type``), as tshark 4.0 prints them."""


def is_packet(value: Any) -> bool:
    """Whether a value is a pyshark packet, without importing pyshark."""
    return _is(value, "pyshark.packet.packet", "Packet")


def is_capture(value: Any) -> bool:
    """Whether a value is a pyshark capture, which yields packets."""
    return _is(value, "pyshark.capture.capture", "Capture")


def raw_packets(packets: Iterable[Any]) -> Iterator[RawPacket]:
    """Yield the bytes, time and link type of each packet.

    Raises:
        SourceError: pyshark did not keep the bytes, or Wireshark's link type has no counterpart here.
    """
    for number, packet in enumerate(packets, 1):
        if not is_packet(packet):
            raise SourceError(f"packet {number} is a {type(packet).__name__}, not a pyshark packet")
        frame = packet.frame_info
        try:
            data = packet.get_raw_packet()
        except AssertionError:
            raise SourceError(
                "pyshark kept no bytes: open its capture with use_json=True and include_raw=True, or pass the file"
            ) from None
        try:
            link_type = LINK_TYPES[int(frame.encap_type)]
            time_ns = nanoseconds(Decimal(str(packet.sniff_timestamp)))
            original_bytes = int(frame.len)
        except (AttributeError, KeyError, ValueError, InvalidOperation):
            raise SourceError(
                f"packet {number} has a link type or time that pyshark does not pass on; pass the file itself"
            ) from None
        yield RawPacket(time_ns, link_type, data, original_bytes)


def _is(value: Any, module: str, name: str) -> bool:
    return any((base.__module__, base.__name__) == (module, name) for base in type(value).__mro__)
