"""Copy packets without names, payload and real addresses, and prove that the verdicts are unchanged.

In: an analysis, and a choice of its packets as for `slice_packets`. Out: a pcapng file of headers. Two addresses share
as many leading bits as before; ports, times and sizes are unchanged. Packets in tunnels keep only their time and
length.
"""

from __future__ import annotations

import os
import secrets
import shutil
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from ipaddress import ip_address
from pathlib import Path
from typing import IO, Any

from tcpwin.errors import OutputError
from tcpwin.limits import Analysis, Slice, analyze
from tcpwin.output import open_whole
from tcpwin.render.wireshark.slicing import annotate, slice_packets
from tcpwin.sources import HeadersSource, write_headers

SHIFTED_TO_NS = 946_684_800 * 10**9
"""Time of the first packet if times are shifted: 2000-01-01."""
NAME = "anonymized.pcapng"
_KEY_BYTES = 32
_PACKET, _PACKET_HEAD_BYTES, _NO_INTERFACE = 6, 28, 0xFFFFFFFF
_ETHERNET, _RAW, _COOKED, _COOKED2, _NULL = 1, (12, 14, 101, 228, 229), 113, 276, (0, 108)
_VLAN, _IPV4, _IPV6, _TCP, _FRAGMENT = (0x8100, 0x88A8, 0x9100), 0x0800, 0x86DD, 6, 44
_NO_OPERATION, _MULTIPATH, _ADD_ADDRESS = 1, 30, 3
_IPV6_EXTENSIONS = (0, 60)


class Anonymizer:
    """Replaces the addresses in headers, by a key that is not stored."""

    def __init__(self, key: bytes | None = None) -> None:
        self._key = secrets.token_bytes(_KEY_BYTES) if key is None else key
        self.address = lru_cache(maxsize=100_000)(self._map)

    def packet(self, link_type: int, data: bytearray) -> bytearray:
        """Return a packet's headers with other addresses; empty if it is not a TCP segment outside tunnels."""
        at = self._link(link_type, data)
        if at is None or len(data) <= at:
            return bytearray()
        version = data[at] >> 4
        end = self._ipv4(data, at) if version == 4 else self._ipv6(data, at) if version == 6 else None
        return bytearray() if end is None else data[:end]

    def _map(self, address: bytes) -> bytes:
        """Map an address so that prefixes are preserved: each bit is flipped or not by a hash of those before it."""
        found = ip_address(address)
        if found.is_loopback or found.is_multicast or found.is_unspecified or address == b"\xff" * 4:
            return address
        bits, plain = len(address) * 8, int.from_bytes(address)
        flipped = 0
        for length in range(bits):
            prefix = (plain >> (bits - length)).to_bytes(16) + bytes((length, bits))
            flipped = flipped << 1 | (blake2b(prefix, key=self._key, digest_size=1).digest()[0] & 1)
        return (plain ^ flipped).to_bytes(len(address))

    def _hardware(self, data: bytearray, at: int) -> None:
        """Map an Ethernet address unless it is a group's; the group and local-administration bits are unchanged."""
        before = bytes(data[at : at + 6])
        if any(before) and not before[0] & 1:
            made = blake2b(before, key=self._key, digest_size=6).digest()
            data[at : at + 6] = bytes((made[0] & 0xFC | before[0] & 3,)) + made[1:]

    def _link(self, link_type: int, data: bytearray) -> int | None:
        """Map the link layer's addresses, and return the position of the IP header; None if there is none."""
        if link_type in _RAW:
            return 0
        if link_type in _NULL:
            return 4
        if link_type == _COOKED and len(data) >= 16:
            self._hardware(data, 6)
            return 16 if _number(data, 14) in (_IPV4, _IPV6) else None
        if link_type == _COOKED2 and len(data) >= 20:
            self._hardware(data, 12)
            return 20 if _number(data, 0) in (_IPV4, _IPV6) else None
        if link_type != _ETHERNET or len(data) < 14:
            return None
        self._hardware(data, 0)
        self._hardware(data, 6)
        at = 12
        while _number(data, at) in _VLAN:
            at += 4
        return at + 2 if _number(data, at) in (_IPV4, _IPV6) else None

    def _ipv4(self, data: bytearray, at: int) -> int | None:
        length = (data[at] & 15) * 4
        if length < 20 or len(data) < at + length or data[at + 9] != _TCP:
            return None
        changes: list[tuple[bytes, bytes]] = []
        self._replace(data, at + 12, 4, changes)
        self._replace(data, at + 16, 4, changes)
        segment, options = at + length, bytes(data[at + 20 : at + length])
        # Options such as record route contain addresses.
        data[at + 20 : segment] = bytes((_NO_OPERATION,)) * len(options)
        _update(data, at + 10, [*changes, (options, bytes(data[at + 20 : segment]))])
        is_later = _number(data, at + 6) & 0x1FFF
        return segment if is_later else self._tcp(data, segment, changes)

    def _ipv6(self, data: bytearray, at: int) -> int | None:
        if len(data) < at + 40:
            return None
        changes: list[tuple[bytes, bytes]] = []
        self._replace(data, at + 8, 16, changes)
        self._replace(data, at + 24, 16, changes)
        kind, place, is_later = data[at + 6], at + 40, False
        while kind in (*_IPV6_EXTENSIONS, _FRAGMENT) and len(data) >= place + 8:
            length = 8 if kind == _FRAGMENT else 8 + data[place + 1] * 8
            is_later = is_later or (kind == _FRAGMENT and _number(data, place + 2) >> 3 > 0)
            kind, place = data[place], place + length
        if kind != _TCP:
            return None
        return place if is_later else self._tcp(data, place, changes)

    def _tcp(self, data: bytearray, at: int, changes: list[tuple[bytes, bytes]]) -> int:
        """Map the addresses in the options, correct the checksum, and return the header's end."""
        if len(data) < at + 20:
            return len(data)
        end = min(at + max((data[at + 12] >> 4) * 4, 20), len(data))
        place = at + 20
        while place + 1 < end and data[place]:
            if data[place] == _NO_OPERATION:
                place += 1
                continue
            length = data[place + 1]
            if length < 2 or place + length > end:
                break
            if data[place] == _MULTIPATH and length >= 8 and data[place + 2] >> 4 == _ADD_ADDRESS:
                before = bytes(data[at:end])
                size = 16 if length >= 20 else 4
                data[place + 4 : place + 4 + size] = self.address(bytes(data[place + 4 : place + 4 + size]))
                changes = [*changes, (before, bytes(data[at:end]))]
            place += length
        _update(data, at + 16, changes)
        return end

    def _replace(self, data: bytearray, at: int, size: int, changes: list[tuple[bytes, bytes]]) -> None:
        before = bytes(data[at : at + size])
        data[at : at + size] = after = self.address(before)
        changes.append((before, after))


def _number(data: bytearray, at: int) -> int:
    return int.from_bytes(data[at : at + 2]) if len(data) >= at + 2 else 0


def _update(data: bytearray, at: int, changes: list[tuple[bytes, bytes]]) -> None:
    """Update a checksum for changed words (RFC 1624, equation 3), so that a wrong one stays wrong."""
    total = ~_number(data, at) & 0xFFFF
    for before, after in changes:
        for place in range(0, len(before), 2):
            total += (~int.from_bytes(before[place : place + 2]) & 0xFFFF) + int.from_bytes(after[place : place + 2])
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    data[at : at + 2] = (~total & 0xFFFF).to_bytes(2)


def anonymize_headers(source: IO[bytes], out: IO[bytes], anonymizer: Anonymizer, *, shift_times: bool = False) -> int:
    """Copy a file of `write_headers` with other addresses; return the number of packets without any remaining bytes.

    Args:
        shift_times: move the first packet to `SHIFTED_TO_NS`.
    """
    links: list[int] = []
    left_out, shift = 0, None if shift_times else 0
    while len(head := source.read(8)) == 8:
        kind, length = struct.unpack("<II", head)
        body = source.read(length - 8)
        if kind == 1:
            links.append(struct.unpack_from("<H", body)[0])
        if kind != _PACKET or struct.unpack_from("<I", body)[0] == _NO_INTERFACE:
            out.write(head + body)
            continue
        interface, high, low, captured, original = struct.unpack_from("<5I", body)
        data = anonymizer.packet(links[interface], bytearray(body[20 : 20 + captured]))
        left_out += not data
        time_ns = high << 32 | low
        shift = SHIFTED_TO_NS - time_ns if shift is None else shift
        time_ns = max(time_ns + shift, 0)
        padded = bytes(data) + bytes(-len(data) % 4)
        fields = (kind, 32 + len(padded), interface, time_ns >> 32, time_ns & 0xFFFFFFFF, len(data), original)
        out.write(struct.pack("<7I", *fields) + padded + struct.pack("<I", 32 + len(padded)))
    return left_out


@contextmanager
def anonymized(
    analysis: Analysis, *, shift_times: bool = False, **chosen: Any
) -> Iterator[tuple[Path, Slice, Analysis]]:
    """Yield a file of anonymized packets (deleted after the block), its counts, and its analysis.

    Args:
        chosen: arguments of `slice_packets`; by default all packets.

    Raises:
        OutputError: the verdicts of the copy differ, or some connections are in tunnels.
    """
    with tempfile.TemporaryDirectory(prefix="tcpwin-") as name:
        folder = Path(name)
        plain, headers, hidden, final = (folder / each for each in ("plain", "headers", "hidden", NAME))
        written = slice_packets(analysis, plain, comments=False, **chosen) if chosen else annotate(analysis, plain)
        with plain.open("rb") as file:
            write_headers(file, headers)
        with headers.open("rb") as file, hidden.open("xb") as out:
            anonymize_headers(file, out, Anonymizer(), shift_times=shift_times)
        with hidden.open("rb") as file:
            # Its analysis must not name the temporary folder.
            facts = write_headers(file, final, name=NAME).facts
        made = analyze(HeadersSource([final], [facts], name=NAME))
        prove_same(analyze(plain), made)
        yield final, replace(written, packets_commented=0), made


def slice_anonymized(
    analysis: Analysis, out: str | os.PathLike[str] | IO[bytes], *, shift_times: bool = False, **chosen: Any
) -> Slice:
    """Write anonymized packets to a pcapng file.

    Raises:
        OutputError: as for `anonymized`, or it cannot be written.
    """
    with anonymized(analysis, shift_times=shift_times, **chosen) as (path, written, _), path.open("rb") as file:
        if isinstance(out, (str, os.PathLike)):
            with open_whole(out, is_binary=True) as target:
                shutil.copyfileobj(file, target)
        else:
            shutil.copyfileobj(file, out)
    return written


@dataclass(frozen=True)
class _Judged:
    """Properties of a connection that must not change."""

    verdict: tuple[object, ...]
    findings: tuple[str, ...]


def prove_same(plain: Analysis, hidden: Analysis) -> None:
    """Raise OutputError unless two captures have the same connections with the same verdicts and findings."""
    if len(plain) != len(hidden):
        raise OutputError(
            f"only {len(hidden):,} of {len(plain):,} connections can be anonymized: the others are in tunnels"
        )
    for one, other in zip(plain.connections, hidden.connections, strict=True):
        if _judged(one) != _judged(other):
            raise OutputError(f"connection {one.id} has another verdict without its payload: nothing was written")


def _judged(connection: Any) -> _Judged:
    found = connection.verdict
    names = ("limit", "second_limit", "share", "cost_ns", "confidence", "owner", "side", "direction", "is_problem")
    return _Judged(
        tuple(getattr(found, name) for name in names), tuple(sorted(each.code for each in connection.findings))
    )
