"""Frames → TCP segments, by dpkt's layers; options as Linux reads them (net/ipv4/tcp_input.c, tcp_parse_options)."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Any

import dpkt
from dpkt.tcp import TH_ACK, TH_FIN, TH_RST, TH_SYN
from twin.frames import Frame

LINKS = {dpkt.pcap.DLT_EN10MB: dpkt.ethernet.Ethernet, dpkt.pcap.DLT_LINUX_SLL2: dpkt.sll2.SLL2}
"""Link types of the bundled captures."""
TWELVE_BITS = 0x0FFF
"""The flags field with its reserved bits, three of which dpkt's `flags` omits."""
BLOCK_BYTES = 8
FAST_OPEN, EXPERIMENT, FAST_OPEN_MAGIC = 34, 254, b"\xf9\x89"
"""RFC 7413 §4.1.1, and the experimental form of its appendix A."""


@dataclass(frozen=True, slots=True)
class Timestamps:
    """RFC 7323 §3."""

    value: int
    echo: int


@dataclass(frozen=True, slots=True)
class Options:
    """The options used by the table; `is_cut` means that the snapshot length truncated them."""

    is_cut: bool = False
    mss: int | None = None
    window_scale: int | None = None
    sack_permitted: bool = False
    timestamps: Timestamps | None = None
    fast_open: bool = False
    sack: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Segment:
    """One TCP segment according to its headers: `length` is the IP header's, however much was captured."""

    frame: int
    time_ns: int
    src: str
    sport: int
    dst: str
    dport: int
    ip_version: int
    ip_id: int | None
    ttl: int
    traffic_class: int
    seq: int
    ack: int
    length: int
    flags: int
    window: int
    checksum: int
    options: Options

    @property
    def is_syn(self) -> bool:
        return bool(self.flags & TH_SYN)

    @property
    def is_fin(self) -> bool:
        return bool(self.flags & TH_FIN)

    @property
    def is_rst(self) -> bool:
        return bool(self.flags & TH_RST)

    @property
    def is_ack(self) -> bool:
        return bool(self.flags & TH_ACK)

    @property
    def space(self) -> int:
        """Return the sequence numbers it takes: payload, SYN and FIN (RFC 9293 §3.3.1)."""
        return self.length + self.is_syn + self.is_fin

    @property
    def tsval(self) -> int | None:
        return self.options.timestamps.value if self.options.timestamps else None

    @property
    def tsecr(self) -> int | None:
        return self.options.timestamps.echo if self.options.timestamps else None


def read_segments(frames: Iterable[Frame]) -> Iterator[Segment]:
    """Return the TCP segments among the frames."""
    for frame in frames:
        if segment := parse(frame):
            yield segment


def parse(frame: Frame) -> Segment | None:
    """Return the segment in a frame, or None without a captured TCP header."""
    ip = LINKS[frame.link_type](frame.captured).data
    if not isinstance(ip, (dpkt.ip.IP, dpkt.ip6.IP6)) or not isinstance(ip.data, dpkt.tcp.TCP):
        return None
    tcp = ip.data
    header_bytes = tcp.off * 4
    return Segment(
        frame=frame.number,
        time_ns=frame.time_ns,
        src=address(ip.src),
        sport=tcp.sport,
        dst=address(ip.dst),
        dport=tcp.dport,
        ip_version=ip.v,
        ip_id=ip.id if ip.v == 4 else None,
        ttl=ip.ttl if ip.v == 4 else ip.hlim,
        traffic_class=ip.tos if ip.v == 4 else ip.fc,
        seq=tcp.seq,
        ack=tcp.ack,
        length=payload_of(ip, frame) - header_bytes,
        flags=tcp._off_flags & TWELVE_BITS,
        window=tcp.win,
        checksum=tcp.sum,
        options=parse_options(tcp.opts, is_cut=len(tcp.opts) < header_bytes - tcp.__hdr_len__),
    )


def payload_of(ip: Any, frame: Frame) -> int:
    """Return the bytes carried by the IP datagram: as stated in its header, at most the frame's original length.

    A length field of 0 (TSO, captured before the driver sets it) leaves it to the frame.
    """
    if ip.v == 4 and (ip.mf or ip.offset):
        raise NotImplementedError(f"frame {frame.number}: fragments are beyond the twin")
    header_bytes = ip.hl * 4 if ip.v == 4 else ip.__hdr_len__
    held = frame.original_bytes - LINKS[frame.link_type].__hdr_len__ - header_bytes
    stated = (ip.len and ip.len - header_bytes) if ip.v == 4 else ip.plen
    return int(min(stated, held) if stated else held)


def address(packed: bytes) -> str:
    return str(IPv4Address(packed) if len(packed) == 4 else IPv6Address(packed))


def parse_options(data: bytes, *, is_cut: bool) -> Options:
    """Read the options of a header: the last of a kind counts, a malformed length ends the list.

    dpkt's `parse_opts` continues after a length of zero or one, where the peer stops.
    """
    found: dict[str, Any] = {}
    while data and data[0] != dpkt.tcp.TCP_OPT_EOL:
        if data[0] == dpkt.tcp.TCP_OPT_NOP:
            data = data[1:]
            continue
        length = data[1] if len(data) > 1 else 0
        if length < 2 or length > len(data):
            break
        found |= parse_option(data[0], data[2:length])
        data = data[length:]
    return Options(is_cut=is_cut, **found)


def parse_option(kind: int, value: bytes) -> dict[str, Any]:
    """Return one option's field and value; nothing if its length is wrong for its kind."""
    match kind, len(value):
        case dpkt.tcp.TCP_OPT_MSS, 2:
            return {"mss": int.from_bytes(value, "big")}
        case dpkt.tcp.TCP_OPT_WSCALE, 1:
            return {"window_scale": value[0]}
        case dpkt.tcp.TCP_OPT_SACKOK, 0:
            return {"sack_permitted": True}
        case dpkt.tcp.TCP_OPT_TIMESTAMP, 8:
            return {"timestamps": Timestamps(*struct.unpack(">II", value))}
        case dpkt.tcp.TCP_OPT_SACK, length if length and length % BLOCK_BYTES == 0:
            return {"sack": tuple(struct.iter_unpack(">II", value))}
    if kind == FAST_OPEN or (kind == EXPERIMENT and value.startswith(FAST_OPEN_MAGIC)):
        return {"fast_open": True}
    return {}
