"""An event's original frame contains the first resent byte, and no later frame does.

Checked without the engine: every segment of a connection's sender in order, with its sequence space.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from analysis.bundled import READABLE, analyze, name_of
from cases import all_cases

import tcpwin

SYN, FIN = 0x02, 0x01
NOT_SENT_AGAIN = {"out_of_order", "capture_reordered"}
"""Causes of late segments, whose events name the segment that overtook them."""
ACKNOWLEDGED = {"spurious", "syn", "syn_ack"}
"""These may be copies of acknowledged data, whose frames are not kept."""
HALF, WHOLE = 1 << 31, 1 << 32

Held = list[tuple[int, int, int]]
"""Sequence numbers, extended beyond 2^32, and their frame."""


def carried(connection: tcpwin.Connection) -> dict[str, Held]:
    """Return the data in each frame of either side, in order, without duplicates made by the capture."""
    held: dict[str, Held] = {"a": [], "b": []}
    newest: dict[str, int] = {}
    for row in connection.segments().rows():
        side, seq = row["direction"], row["seq"]
        space = row["length"] + (row["flags"] & (SYN | FIN)).bit_count()
        at = newest.setdefault(side, seq)
        at += (seq - at + HALF) % WHOLE - HALF
        newest[side] = max(at, newest[side])
        if space and "capture_duplicate" not in (row["events"] or ""):
            held[side].append((at, at + space, row["frame"]))
    return held


def expected(held: Held, frame: int) -> int | None:
    """Return the newest earlier frame with its first byte."""
    [start] = [left for left, _, number in held if number == frame]
    return max((number for left, right, number in held if number < frame and left <= start < right), default=None)


def wrong(analysis: tcpwin.Analysis) -> Iterator[str]:
    """Return every event that names another frame, or none although its data was in flight."""
    for connection in analysis.connections:
        events = [each for each in connection.events if each.cause and each.cause not in NOT_SENT_AGAIN]
        held = carried(connection) if events else {}
        for event in events:
            truth = expected(held[event.direction], event.frame)
            is_acknowledged = event.original_frame is None and event.cause in ACKNOWLEDGED
            if event.original_frame != truth and not is_acknowledged:
                yield f"frame {event.frame} ({event.cause}): {event.original_frame} instead of {truth}"


@all_cases("path", READABLE, ids=name_of)
def test_of_the_bundled_captures(path: Path) -> None:
    assert not list(wrong(analyze(path)))


def test_of_flights_too_large_to_keep_apart(tmp_path: Path) -> None:
    """Of 5,000 segments in flight, neighbours are tracked together: a copy of either names no frame, or the right
    one.
    """
    path = tmp_path / "large.pcap"
    path.write_bytes(large_flight())
    [connection] = tcpwin.analyze(path).connections
    events = [event for event in connection.events if event.cause]
    held = carried(connection)["a"]
    assert [event.seq for event in events] == [1 + 100 * place for place in AGAIN]
    named = [(event.original_frame, expected(held, event.frame)) for event in events]
    assert all(frame in {None, truth} for frame, truth in named)
    assert named[-1][0] == named[-1][1]


SEGMENTS = 5_000
AGAIN = (0, 1, 2, 3, 2_001, SEGMENTS - 1)


def large_flight() -> bytes:
    """A handshake, unacknowledged segments of 100 bytes, some of them resent a second later."""
    flight = [(1 + 100 * place, 1_000 + place) for place in range(SEGMENTS)]
    again = [(1 + 100 * place, 1_010_000 + place) for place in AGAIN]
    packets = [packet(0, 0, 2, 0, 0, 0), packet(0, 1, 0x12, 0, 1, 500)]
    packets += [packet(seq, 0, 0x10, 100, 1, at_us) for seq, at_us in flight + again]
    return struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101) + b"".join(packets)


def packet(seq: int, side: int, flags: int, length: int, ack: int, at_us: int) -> bytes:
    """Return one record of a capture of bare IPv4."""
    source, ports = (b"\x0a\0\0\x01\x0a\0\0\x02", (4000, 80))
    if side:
        source, ports = source[4:] + source[:4], ports[::-1]
    options = b"\x02\x04\x05\xb4\x03\x03\x0e\0" if flags & SYN else b""
    header = struct.pack(">HHIIBBHHH", *ports, seq, ack, 5 + len(options) // 4 << 4, flags, 65535, 0, 0) + options
    size = 20 + len(header) + length
    ip = struct.pack(">BBHHHBBH", 0x45, 0, size, 0, 0, 64, 6, 0) + source
    return struct.pack("<IIII", at_us // 10**6, at_us % 10**6, size, size) + ip + header + bytes(length)
