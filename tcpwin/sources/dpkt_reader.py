"""dpkt readers: objects that yield (seconds, bytes) and know their link type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tcpwin.sources.pcapng import RawPacket, nanoseconds

MAX_IP_BYTES = 65_535 + 256
"""The longest IPv4 datagram and the headers below it."""


def is_dpkt_reader(value: Any) -> bool:
    """Whether a value is a dpkt reader, without importing dpkt."""
    return any(base.__module__.startswith("dpkt.") for base in type(value).__mro__) and hasattr(value, "datalink")


def raw_packets(reader: Any) -> Iterator[RawPacket]:
    """Yield the remaining packets of the reader.

    dpkt hides the length on the wire. A packet as long as the snapshot length was probably truncated, so IP's maximum
    is assumed and the IP header's length counts; for others it is the captured length.
    """
    link_type = reader.datalink()
    snaplen_bytes = getattr(reader, "snaplen", 0) or MAX_IP_BYTES
    for seconds, data in reader:
        original_bytes = MAX_IP_BYTES if len(data) >= snaplen_bytes else len(data)
        yield RawPacket(nanoseconds(seconds), link_type, bytes(data), original_bytes)
