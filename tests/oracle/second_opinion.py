"""Retransmissions according to tcprs, a plugin of Zeek's, frame by frame.

Takes its log (time, sequence number, kind) and the segments of the capture, and returns the kind of each frame. SUMMARY
explains the numbers of its kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path

from oracle.compare import Segment

TIME, SEQ, KIND = 0, 7, 12
# Kinds 2 and 3: duplicate ACKs, 13: SACK, 16: SACK far ahead (FACK); 1, 14 and 15: a timer; 5: recovery continues.
SUMMARY = {1: "rto", 2: "fast", 3: "fast", 5: "recovery", 13: "fast", 14: "rto", 15: "rto", 16: "fast"}


def read_log(path: Path, segments: Iterable[Segment]) -> Iterator[tuple[int, str]]:
    """Yield the frame and the kind of each retransmission."""
    frames = {(segment.time_ns // 1000, segment.seq): segment.frame for segment in segments}
    for line in path.read_text(encoding="utf8").splitlines():
        if not line.startswith("#"):
            fields = line.split("\t")
            time_us = int(Decimal(fields[TIME]).scaleb(6))
            yield frames[time_us, int(fields[SEQ])], SUMMARY[int(fields[KIND])]
