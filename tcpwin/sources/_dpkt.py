"""dpkt readers: objects that yield (seconds, bytes) and know their link type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tcpwin.sources._pcapng import RawPacket, nanoseconds


def is_dpkt_reader(value: Any) -> bool:
    """Whether a value is a dpkt reader, told without importing dpkt."""
    return any(base.__module__.startswith("dpkt.") for base in type(value).__mro__) and hasattr(value, "datalink")


def raw_packets(reader: Any) -> Iterator[RawPacket]:
    """The packets that the reader has left. dpkt hides the length on the wire: it is taken from the IP header."""
    link_type = reader.datalink()
    for seconds, data in reader:
        yield RawPacket(nanoseconds(seconds), link_type, bytes(data), len(data))
