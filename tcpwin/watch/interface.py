"""Packet headers from an interface, by a packet socket with a ring shared with the kernel (TPACKET_V3).

In: an interface's name. Out: pcap records. The kernel truncates and filters packets; it needs only the capability
CAP_NET_RAW. Sources: `linux/if_packet.h`, `linux/filter.h` and packet(7).
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import select
import socket
import struct
import sys
from collections.abc import Sequence

from tcpwin import _engine
from tcpwin.errors import SourceError
from tcpwin.sources import compile_filter
from tcpwin.watch.chunk import Chunk, file_header

SNAPLEN_BYTES = 160
"""Fits IPv6 with an extension and TCP with all options, after a tunnel's headers."""
BLOCK_BYTES = 1 << 20
_LINKTYPE_RAW = 101
"""Packets begin with their IP header."""

_SOL_PACKET, _PACKET_RX_RING, _PACKET_STATISTICS, _PACKET_VERSION = 263, 5, 6, 10
_TPACKET_V3, _ETH_P_ALL, _SO_ATTACH_FILTER = 2, 3, 26
_FRAME_BYTES = 1 << 11
_RETIRE_MS = 100
"""Time after which a block is delivered, however little it contains."""
_STATUS, _USED = 8, 20
"""Offsets in a block of its owner and its used bytes."""
_STATUS_USER = 1
_ALIGNED = 64

_RET_K = 0x06
_TCP: tuple[tuple[int, int, int, int], ...] = (
    (0x30, 0, 0, 0),
    (0x54, 0, 0, 0xF0),
    (0x15, 0, 2, 0x40),
    (0x30, 0, 0, 9),
    (0x15, 6, 5, socket.IPPROTO_TCP),
    (0x15, 0, 4, 0x60),
    (0x30, 0, 0, 6),
    (0x15, 3, 0, socket.IPPROTO_TCP),
    (0x15, 2, 0, socket.IPPROTO_FRAGMENT),
    (0x15, 1, 0, socket.IPPROTO_HOPOPTS),
    (_RET_K, 0, 0, 0),
    (_RET_K, 0, 0, SNAPLEN_BYTES),
)
"""TCP in IPv4, and in IPv6 directly or behind a fragment's or a hop-by-hop header: `ldb [0]; and #0xf0; …`."""


class Interface:
    """The packets of an interface, or of ``any``.

    Args:
        interface: its name.
        filter: an expression in libpcap's language; None for TCP.
        blocks: number of ring blocks of one mebibyte each.

    Raises:
        SourceError: the interface does not exist, or this user may not capture.
        FilterError: the filter is invalid.
    """

    def __init__(self, interface: str, *, filter: str | None = None, blocks: int = 32) -> None:
        if not sys.platform.startswith("linux"):
            raise SourceError("interfaces can be watched on Linux only; elsewhere use --follow with a file of tcpdump")
        self.header = file_header(_LINKTYPE_RAW, SNAPLEN_BYTES)
        self.name = interface
        self.dropped = 0
        self.trouble = ""
        self.is_over = False
        self.is_live = True
        self._blocks = blocks
        self._next = 0
        self._is_loopback = _is_loopback(interface)
        program = _TCP if filter is None else _cut(compile_filter(filter, _LINKTYPE_RAW))
        try:
            # Protocol 0: until the socket is bound, nothing arrives unfiltered.
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
        except PermissionError:
            raise SourceError(
                f"cannot capture packets on {interface}: this needs the capability CAP_NET_RAW "
                "(run it as root, or as the unit in the documentation does)"
            ) from None
        try:
            self._open(interface, program)
        except OSError as error:
            self._socket.close()
            raise SourceError(f"cannot capture packets on {interface}: {error.strerror or error}") from None
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN | select.POLLERR)

    def _open(self, interface: str, program: Sequence[tuple[int, int, int, int]]) -> None:
        self._socket.setsockopt(_SOL_PACKET, _PACKET_VERSION, struct.pack("i", _TPACKET_V3))
        code = b"".join(struct.pack("HBBI", *each) for each in program)
        held = ctypes.create_string_buffer(code, len(code))
        self._socket.setsockopt(
            socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HL", len(program), ctypes.addressof(held))
        )
        frames = self._blocks * BLOCK_BYTES // _FRAME_BYTES
        ring = struct.pack("7I", BLOCK_BYTES, self._blocks, _FRAME_BYTES, frames, _RETIRE_MS, 0, 0)
        self._socket.setsockopt(_SOL_PACKET, _PACKET_RX_RING, ring)
        self._ring = mmap.mmap(self._socket.fileno(), self._blocks * BLOCK_BYTES)
        self._socket.bind(("" if interface == "any" else interface, _ETH_P_ALL))

    def take(self, timeout_s: float) -> list[Chunk]:
        if not self._is_ready() and self._poll.poll(max(0, int(timeout_s * 1000))):
            code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                self.trouble = f"{self.name}: {os.strerror(code)}"
                if code not in (errno.ENETDOWN, errno.ENOBUFS):
                    self.is_over = True
        taken = []
        for _ in range(self._blocks):
            if not self._is_ready():
                break
            place = self._next * BLOCK_BYTES
            (used,) = struct.unpack_from("I", self._ring, place + _USED)
            block = self._ring[place : place + min(used, BLOCK_BYTES)]
            records, packets, first_ns, last_ns = _engine.ring_records(block, skip_outgoing=self._is_loopback)
            struct.pack_into("I", self._ring, place + _STATUS, 0)
            self._next = (self._next + 1) % self._blocks
            if packets:
                self.trouble = ""
                taken.append(Chunk(records, packets, first_ns, last_ns))
        # Reading it sets the kernel's count to zero.
        _, dropped, _ = struct.unpack("3I", self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 12))
        self.dropped += dropped
        return taken

    def close(self) -> None:
        self._ring.close()
        self._socket.close()

    def _is_ready(self) -> bool:
        (status,) = struct.unpack_from("I", self._ring, self._next * BLOCK_BYTES + _STATUS)
        return bool(status & _STATUS_USER)


def _cut(program: Sequence[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
    """Return the same program, limited to the headers of matching packets."""
    return [(code, jt, jf, min(k, SNAPLEN_BYTES) if code == _RET_K else k) for code, jt, jf, k in program]


def _is_loopback(interface: str) -> bool:
    names = sorted(name for _, name in socket.if_nameindex())
    if interface not in (*names, "any"):
        raise SourceError(f"no interface {interface}; available: {', '.join(names)}, any")
    return interface == "lo"
