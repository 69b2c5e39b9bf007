"""Captures of several stories, for rules that look at all connections; a folder of bundled captures.

Takes stories in order of time, each with its port, and returns one pcap.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

import ladder
from stories.story import Story

SYNS = ("<mss 1460,sackOK,ws 7>", "<mss 1460,sackOK,ws 7>")
"""Options of both SYNs: windows are multiples of 128."""
CAPTURES = Path(__file__).resolve().parents[2] / "captures"


def joined(folder: Path, stories: Iterable[Story], *, sort: bool = True, snaplen: int = 262_144) -> Path:
    """Return one nanosecond pcap of all stories, sorted by time or concatenated."""
    steps = [step for story in stories for step in ladder.parse(story.text).steps]
    if sort:
        steps.sort(key=lambda step: step.time_ns)
    path = folder / "joined.pcap"
    with path.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, snaplen, 1))
        for step in steps:
            seconds, nanoseconds = divmod(step.time_ns, 1_000_000_000)
            kept = step.packet[:snaplen]
            out.write(struct.pack("<IIII", seconds, nanoseconds, len(kept), len(step.packet)) + kept)
    return path


def one_way(story: Story, side: str = "a") -> Story:
    """Return the story with the packets of one side only."""
    story.lines = [line for line in story.lines if " > " not in line or f" {side} > " in line]
    return story


def with_drops(folder: Path, story: Story, drops: int) -> Path:
    """Return the story as pcapng whose interface reports this many dropped packets (isb_ifdrop, option 5)."""
    option = struct.pack("<HHQ", 5, 8, drops) + bytes(4)
    blocks = [
        _block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)),
        _block(1, struct.pack("<HHI", 1, 0, 262_144)),
    ]
    for step in ladder.parse(story.text).steps:
        high, low = divmod(step.time_ns // 1000, 1 << 32)
        length = len(step.packet)
        padded = step.packet + bytes(-length % 4)
        blocks.append(_block(6, struct.pack("<IIIII", 0, high, low, length, length) + padded))
    blocks.append(_block(5, struct.pack("<III", 0, 0, 0) + option))
    path = folder / "drops.pcapng"
    path.write_bytes(b"".join(blocks))
    return path


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length
