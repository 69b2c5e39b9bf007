"""Files → frames, using dpkt's header structures: pcap and pcapng, plain, gzip, zstd or lz4.

dpkt's readers keep neither the original length nor exact times, and support one section and one interface, so files are
parsed here. Damage ends a file; everything before it counts (draft-ietf-opsawg-pcap, -pcapng).
"""

from __future__ import annotations

import struct
import subprocess
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dpkt
from live import HANG_S

Tool = Callable[[str], str]
"""Find a program by its name."""

SECOND_NS = 10**9
MAX_CAPTURED = 262_144
"""libpcap's MAXIMUM_SNAPLEN: a record that claims more is damaged, unless the header's snaplen allows it."""
PROGRAMS = {".zst": "zstd", ".lz4": "lz4"}

BIG, LITTLE = ">", "<"
FILE_HEADERS = {BIG: dpkt.pcap.FileHdr, LITTLE: dpkt.pcap.LEFileHdr}
RECORD_HEADERS = {BIG: dpkt.pcap.PktHdr, LITTLE: dpkt.pcap.LEPktHdr}
UNIT_NS = {dpkt.pcap.TCPDUMP_MAGIC: 1000, dpkt.pcap.TCPDUMP_MAGIC_NANO: 1}
"""Nanoseconds per unit of a record's fraction of a second, by the magic number."""

SECTION_START = struct.pack(">I", dpkt.pcapng.PCAPNG_BT_SHB)
"""The same in both byte orders."""
INTERFACES = {BIG: dpkt.pcapng.InterfaceDescriptionBlock, LITTLE: dpkt.pcapng.InterfaceDescriptionBlockLE}
PACKETS = {BIG: dpkt.pcapng.EnhancedPacketBlock, LITTLE: dpkt.pcapng.EnhancedPacketBlockLE}
OPTIONS = {BIG: dpkt.pcapng.PcapngOption, LITTLE: dpkt.pcapng.PcapngOptionLE}
BLOCK_EDGES = 12
"""Type, length, and the length again at the end."""
MICROSECONDS = 6
"""if_tsresol if the option is absent."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One captured packet. Numbers begin at 1 and include unreadable packets."""

    number: int
    time_ns: int
    link_type: int
    captured: bytes
    original_bytes: int


@dataclass(frozen=True, slots=True)
class Interface:
    """Interface description of a pcapng file."""

    link_type: int
    ticks_per_second: int
    offset_s: int

    def time_ns(self, ticks: int) -> int:
        return self.offset_s * SECOND_NS + ticks * SECOND_NS // self.ticks_per_second


def read_frames(path: Path, tool: Tool) -> Iterator[Frame]:
    """Return the frames of a file up to any damage."""
    data = plain_bytes(path, tool)
    return read_pcapng(data) if data.startswith(SECTION_START) else read_pcap(data)


def plain_bytes(path: Path, tool: Tool) -> bytes:
    """Return the decompressed file as far as possible."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        return b"".join(inflate(data))
    if program := PROGRAMS.get(path.suffix):
        # For a damaged stream the program fails after writing what it could decompress.
        command = [tool(program), "-dcq", str(path)]
        return subprocess.run(command, capture_output=True, check=False, timeout=HANG_S).stdout
    return data


def inflate(data: bytes) -> Iterator[bytes]:
    """Inflate a one-member gzip stream byte by byte up to its damage, so that a damaged byte affects no other."""
    stream = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    for byte in data:
        try:
            yield stream.decompress(bytes([byte]))
        except zlib.error:
            return


def read_pcap(data: bytes) -> Iterator[Frame]:
    """Frames of a pcap file of version 2.4."""
    headers = {order: kind(data[: kind.__hdr_len__]) for order, kind in FILE_HEADERS.items()}
    order = next((order for order, header in headers.items() if header.magic in UNIT_NS), None)
    if order is None:
        raise ValueError("not a pcap file")
    header = headers[order]
    if (header.v_major, header.v_minor) != (2, 4):
        raise ValueError("not version 2.4 of pcap")
    unit_ns, most = UNIT_NS[header.magic], max(header.snaplen, MAX_CAPTURED)
    header_bytes = RECORD_HEADERS[order].__hdr_len__
    number, at = 0, header.__hdr_len__
    while at + header_bytes <= len(data):
        record = RECORD_HEADERS[order](data[at : at + header_bytes])
        at += header_bytes
        if record.caplen > most or at + record.caplen > len(data):
            return
        number += 1
        time_ns = record.tv_sec * SECOND_NS + record.tv_usec * unit_ns
        captured = data[at : at + record.caplen]
        yield Frame(number, time_ns, header.linktype, captured, max(record.len, record.caplen))
        at += record.caplen


def read_pcapng(data: bytes) -> Iterator[Frame]:
    """Yield the frames of a pcapng file's Enhanced Packet Blocks; each section has separate interfaces."""
    number = 0
    order, interfaces = LITTLE, list[Interface]()
    at = 0
    while at + BLOCK_EDGES <= len(data):
        if data.startswith(SECTION_START, at):
            magic = struct.unpack_from(">I", data, at + 8)[0]
            order, interfaces = (BIG if magic == dpkt.pcapng.BYTE_ORDER_MAGIC else LITTLE), []
        kind, length = struct.unpack_from(order + "II", data, at)
        if length < BLOCK_EDGES or length % 4 or at + length > len(data):
            return
        block = data[at : at + length]
        if kind == dpkt.pcapng.PCAPNG_BT_IDB:
            interfaces.append(read_interface(block, order))
        elif kind == dpkt.pcapng.PCAPNG_BT_EPB:
            number += 1
            packet = unpack_header(PACKETS[order], block)
            if packet.iface_id < len(interfaces):
                yield read_packet(number, packet, block, interfaces[packet.iface_id])
        (length_again,) = struct.unpack_from(order + "I", block, length - 4)
        if length_again != length:
            return
        at += length


def read_packet(number: int, packet: Any, block: bytes, interface: Interface) -> Frame:
    start = packet.__hdr_len__ - 4
    time_ns = interface.time_ns(packet.ts_high << 32 | packet.ts_low)
    captured = block[start : start + packet.caplen]
    return Frame(number, time_ns, interface.link_type, captured, max(packet.pkt_len, packet.caplen))


def read_interface(block: bytes, order: str) -> Interface:
    """Read link type and clock (draft-ietf-opsawg-pcapng §4.2); an option that exceeds its block ends the options."""
    header = unpack_header(INTERFACES[order], block)
    resolution, offset_s = MICROSECONDS, 0
    rest = block[header.__hdr_len__ - 4 : -4]
    while len(rest) >= OPTIONS[order].__hdr_len__:
        option = OPTIONS[order](rest)
        if option.code == dpkt.pcapng.PCAPNG_OPT_ENDOFOPT or len(option.data) < option.len:
            break
        if option.code == dpkt.pcapng.PCAPNG_OPT_IF_TSRESOL:
            resolution = option.data[0]
        elif option.code == dpkt.pcapng.PCAPNG_OPT_IF_TSOFFSET:
            (offset_s,) = struct.unpack(order + "q", option.data)
        rest = rest[len(option) :]
    base = 2 if resolution & 0x80 else 10
    return Interface(header.linktype, base ** (resolution & 0x7F), offset_s)


def unpack_header(kind: type[Any], block: bytes) -> Any:
    """Unpack only a block's fixed fields; the caller checks its end."""
    header = kind()
    header.unpack_hdr(block)
    return header
