"""scapy packets, returned by ``rdpcap`` or built by hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tcpwin.errors import SourceError
from tcpwin.sources.pcapng import RawPacket, nanoseconds

RAW_IP = 101


def is_packet(value: Any) -> bool:
    """Whether a value is a scapy packet, without importing scapy."""
    return any((base.__module__, base.__name__) == ("scapy.packet", "Packet") for base in type(value).__mro__)


def results_of(sniffer: Any) -> Any:
    """Return the packets of a scapy `AsyncSniffer`; anything else as it is.

    Raises:
        SourceError: it is still running, or was never started.
    """
    if not any(
        (base.__module__, base.__name__) == ("scapy.sendrecv", "AsyncSniffer") for base in type(sniffer).__mro__
    ):
        return sniffer
    if sniffer.running or sniffer.results is None:
        raise SourceError(
            "the sniffer has no packets yet: call its stop() or join() first, and start it with store=True"
        )
    return sniffer.results


def raw_packets(packets: Iterable[Any]) -> Iterator[RawPacket]:
    """Yield the bytes, time and link type of each packet, in the given order."""
    from scapy.config import conf

    for number, packet in enumerate(packets, 1):
        if not is_packet(packet):
            raise SourceError(f"packet {number} is a {type(packet).__name__}, not a scapy packet")
        data = bytes(packet)
        yield RawPacket(
            time_ns=nanoseconds(packet.time),
            link_type=_link_type(packet, conf),
            data=data,
            original_bytes=packet.wirelen or len(data),
        )


def _link_type(packet: Any, conf: Any) -> int:
    if type(packet).__name__ in ("IP", "IPv6"):
        return RAW_IP
    try:
        return int(conf.l2types.layer2num[type(packet)])
    except KeyError:
        raise SourceError(f"scapy's {type(packet).__name__} has no link type; begin packets with Ether or IP") from None
