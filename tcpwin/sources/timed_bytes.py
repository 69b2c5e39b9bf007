"""Pairs of a packet's time and its bytes, such as code that captures by itself has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

from tcpwin.errors import SourceError
from tcpwin.sources.pcapng import RawPacket, nanoseconds

ETHERNET, RAW_IP = 1, 101
ETHERNET_HEADER_BYTES, IPV4_HEADER_BYTES, IPV6_HEADER_BYTES = 14, 20, 40


def is_timed(value: Any) -> bool:
    """Whether a value is a pair of seconds since the epoch and bytes."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        return False
    seconds, data = value
    return isinstance(seconds, int | float | Decimal) and isinstance(data, bytes | bytearray | memoryview)


def raw_packets(pairs: Iterable[Any]) -> Iterator[RawPacket]:
    """Yield the packets: Ethernet frames, or IP packets if the first one is an IP packet of exactly its own length.

    A packet that is shorter than its IP header says was truncated, and has the length that the header says.

    Raises:
        SourceError: something is not such a pair.
    """
    link_type: int | None = None
    for number, pair in enumerate(pairs, 1):
        if not is_timed(pair):
            raise SourceError(f"packet {number} is a {type(pair).__name__}, not a pair of seconds and bytes")
        seconds, data = pair[0], bytes(pair[1])
        if link_type is None:
            link_type = RAW_IP if _ip_bytes(data) == len(data) else ETHERNET
        original_bytes = _ip_bytes(data) if link_type == RAW_IP else _frame_bytes(data)
        yield RawPacket(nanoseconds(seconds), link_type, data, max(original_bytes, len(data)))


def _frame_bytes(data: bytes) -> int:
    """Return the length of an Ethernet II frame by its IP header; 0 if it contains no IP packet."""
    header, packet = data[:ETHERNET_HEADER_BYTES], data[ETHERNET_HEADER_BYTES:]
    if header[12:] not in (b"\x08\x00", b"\x86\xdd") or not (packet_bytes := _ip_bytes(packet)):
        return 0
    return ETHERNET_HEADER_BYTES + packet_bytes


def _ip_bytes(data: bytes) -> int:
    """Return the length of an IP packet by its header (RFC 791 §3.1, RFC 8200 §3); 0 if it is not IP."""
    if len(data) >= IPV4_HEADER_BYTES and data[0] >> 4 == 4:
        return int.from_bytes(data[2:4])
    if len(data) >= IPV6_HEADER_BYTES and data[0] >> 4 == 6:
        return int.from_bytes(data[4:6]) + IPV6_HEADER_BYTES
    return 0
