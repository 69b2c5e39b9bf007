"""A capture as seen by tshark: its frames, and the segments of one connection among them.

It is independent of tcpwin, so findings can be compared with it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from pathlib import Path

from live import HANG_S

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
MODULO = 1 << 32
ABSOLUTE = ("-o", "tcp.relative_sequence_numbers:FALSE")
COLUMNS = (
    "frame.number",
    "frame.time_epoch",
    "frame.len",
    "frame.cap_len",
    "ip.src",
    "ip.dst",
    "ipv6.src",
    "ipv6.dst",
    "ip.id",
    "tcp.srcport",
    "tcp.dstport",
    "tcp.flags",
    "tcp.seq_raw",
    "tcp.ack_raw",
    "tcp.len",
    "tcp.window_size_value",
    "tcp.options.mss_val",
    "tcp.options.sack_le",
    "tcp.options.sack_re",
    "tcp.analysis.ack_lost_segment",
)


@dataclass(frozen=True, slots=True)
class Segment:
    """A TCP segment of a frame; of several in one frame (tunnels, ICMP, samples) the one with the requested ports."""

    frame: int
    time_ns: int
    source: tuple[str, int]
    destination: tuple[str, int]
    flags: int
    seq: int
    ack: int
    length: int
    window: int
    ip_ids: tuple[str, ...]
    mss: int | None
    sack: tuple[tuple[int, int], ...]
    acks_unseen: bool

    @property
    def takes(self) -> int:
        """Return the sequence numbers it takes, including SYN and FIN."""
        return self.length + bool(self.flags & SYN) + bool(self.flags & FIN)

    @property
    def end(self) -> int:
        """Return the sequence number after it."""
        return (self.seq + self.takes) % MODULO

    def overlaps(self, other: Segment) -> bool:
        """Return whether both contain a common sequence number."""
        return step(self.seq, other.end) > 0 and step(other.seq, self.end) > 0


def step(first: int, second: int) -> int:
    """Return the step from one sequence number to another, negative backwards (RFC 9293 §3.4)."""
    return (second - first + (MODULO >> 1)) % MODULO - (MODULO >> 1)


@dataclass(frozen=True)
class Opened:
    """All frames of a capture: tshark's columns by number."""

    rows: dict[int, dict[str, str]]
    complaints: str = field(repr=False, default="")

    def time_ns(self, frame: int) -> int:
        """Return a frame's time in nanoseconds since the epoch."""
        return int(Decimal(self.rows[frame]["frame.time_epoch"]) * 1_000_000_000)

    @cached_property
    def tcp(self) -> list[Segment]:
        """Return one segment of each frame that has any."""
        return [self.segment(frame) for frame, row in self.rows.items() if row["tcp.seq_raw"]]

    def between(self, one: tuple[str, int], other: tuple[str, int]) -> Iterator[Segment]:
        """Return the segments between two endpoints in the file's order."""
        for frame, row in self.rows.items():
            if row["tcp.seq_raw"] and self.has(frame, one, other):
                yield self.segment(frame, one, other)

    def has(self, frame: int, one: tuple[str, int], other: tuple[str, int]) -> bool:
        """Return whether a frame has a segment between two endpoints."""
        row = self.rows[frame]
        addresses = {*_many(row["ip.src"]), *_many(row["ip.dst"]), *_many(row["ipv6.src"]), *_many(row["ipv6.dst"])}
        ports = set(zip(_many(row["tcp.srcport"]), _many(row["tcp.dstport"]), strict=True))
        wanted = {(str(one[1]), str(other[1])), (str(other[1]), str(one[1]))}
        return {one[0], other[0]} <= addresses and bool(ports & wanted)

    def segment(self, frame: int, one: tuple[str, int] | None = None, other: tuple[str, int] | None = None) -> Segment:
        """Return a frame's segment between two endpoints, or its last segment."""
        row = self.rows[frame]
        ports = list(zip(map(int, _many(row["tcp.srcport"])), map(int, _many(row["tcp.dstport"])), strict=True))
        wanted = {(one[1], other[1]), (other[1], one[1])} if one and other else set(ports)
        at = max(index for index, pair in enumerate(ports) if pair in wanted)
        source, destination = (
            (_many(row[f"ip.{way}"]) or _many(row[f"ipv6.{way}"]) or [""])[-1] for way in ("src", "dst")
        )
        if one and other:
            forth = ports[at] == (one[1], other[1]) and (one[1] != other[1] or source == one[0])
            source, destination = (one[0], other[0]) if forth else (other[0], one[0])

        def number(column: str) -> int:
            values = _many(row[column])
            if not values:
                return 0
            return int(values[at] if len(values) == len(ports) else values[-1], 0)

        return Segment(
            frame=frame,
            time_ns=self.time_ns(frame),
            source=(source, ports[at][0]),
            destination=(destination, ports[at][1]),
            flags=number("tcp.flags"),
            seq=number("tcp.seq_raw"),
            ack=number("tcp.ack_raw"),
            length=number("tcp.len"),
            window=number("tcp.window_size_value"),
            ip_ids=tuple(_many(row["ip.id"])),
            mss=number("tcp.options.mss_val") if row["tcp.options.mss_val"] else None,
            sack=tuple(
                zip(
                    map(int, _many(row["tcp.options.sack_le"])),
                    map(int, _many(row["tcp.options.sack_re"])),
                    strict=True,
                )
            ),
            acks_unseen=bool(row["tcp.analysis.ack_lost_segment"]),
        )


def _many(text: str) -> list[str]:
    return text.split(",") if text else []


def open_capture(tshark: str, path: Path) -> Opened:
    """Open a capture with one call of tshark."""
    fields = [word for column in COLUMNS for word in ("-e", column)]
    done = subprocess.run(
        [tshark, "-r", str(path), "-T", "fields", "-E", "separator=|", "-E", "occurrence=a", *ABSOLUTE, *fields],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    rows = {}
    for line in done.stdout.splitlines():
        row = dict(zip(COLUMNS, line.split("|"), strict=True))
        rows[int(row["frame.number"])] = row
    return Opened(rows, done.stderr)
