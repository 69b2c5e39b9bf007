"""An index of a capture's packets for the plugin: each packet's connection, flight, window and cause; each connection's
limit.

In: an analysis of one file. Out: a file that the plugin reads without unpacking: a header, names, a table of
connections, their texts, a table of packets. All numbers are little-endian. Tables are blocks of 1,024 records, each
followed by the sum of its words, so damage is noticed before it is shown.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote_from_bytes, unquote_to_bytes

import numpy as np

from tcpwin import _engine
from tcpwin.errors import OutputError, SourceError, TcpwinError
from tcpwin.limits import CONFIDENCES, LIMITS, OWNERS, Analysis
from tcpwin.output import open_whole
from tcpwin.render.view.verdict import view_verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

MAGIC = b"tcpwin-index 1\n\0"
MOST_PACKETS = 100_000_000
"""Maximum number of packets of an index, which then has 2.8 GB."""
_HEADER = struct.Struct("<16s6I")
_BLOCK = 1024
_ABSENT = 0xFFFF_FFFF
_NO_NAME = 0xFF
_MOST_TEXT_BYTES = 4000
_CHECKED_MODULUS = 65_521
_MOST_SETS = 0xFFFF
_MOST_NAMES_BYTES = 16 << 20
_CONNECTION = np.dtype(
    [
        ("text_at", "<u4"),
        ("verdict_bytes", "<u2"),
        ("fix_bytes", "<u2"),
        ("limit", "u1"),
        ("second_limit", "u1"),
        ("confidence", "u1"),
        ("owner", "u1"),
        ("share", "<f4"),
        ("cost_us", "<f8"),
        ("sum", "<u4"),
        ("unused", "<u4"),
    ]
)
_PACKET = np.dtype(
    [
        ("connection", "<u4"),
        ("flight", "<u4"),
        ("window", "<u4"),
        ("rtt_us", "<u4"),
        ("events", "<u4"),
        ("check", "<u2"),
        ("findings", "<u2"),
        ("cause", "u1"),
        ("direction", "u1"),
        ("unused", "<u2"),
    ]
)


@dataclass(frozen=True, slots=True)
class IndexedCapture:
    """The capture that an index belongs to.

    Attributes:
        size_bytes: size of the file when it was indexed.
        first_time_ns: time of its first packet, nanoseconds since the epoch; None if it has no time.
        connections: number of connections.
    """

    path: Path
    size_bytes: int
    first_time_ns: int | None
    packets: int
    connections: int


def write_index(
    analysis: Analysis, capture: Path, out: Path, *, progress: Callable[[int], object] | None = None
) -> IndexedCapture:
    """Write the index of a capture; reads its packets once more.

    Args:
        analysis: the analysis of all packets of that file.
        progress: called periodically with the number of bytes read.

    Raises:
        OutputError: it cannot be written, or the capture has too many packets.
        SourceError: the capture could be read only once.
    """
    facts = analysis.capture
    count = sum(file.packets + file.packets_skipped for file in facts.files)
    if count > MOST_PACKETS:
        raise OutputError(
            f"{analysis.name} has {count:,} packets: an index has at most {MOST_PACKETS:,}; slice it first"
        )
    codes: dict[int, list[str]] = {}
    for finding in analysis.findings:
        for frame in set(finding.evidence.frames):
            if finding.code not in codes.setdefault(frame, []):
                codes[frame].append(finding.code)
    sets: dict[str, int] = {}
    marks = {frame: _place(sets, ",".join(own), own[0]) for frame, own in sorted(codes.items()) if 1 <= frame <= count}
    size_bytes = capture.stat().st_size
    names = _names(capture, size_bytes, sets)
    texts = bytearray()
    connections = _connections(analysis, texts)
    with open_whole(out, is_binary=True) as file:
        head = _HEADER.pack(MAGIC, count, len(analysis), len(names), len(texts), _sum(names), 0)[:-4]
        file.write(head + struct.pack("<I", _sum(head)) + names)
        for start in range(0, len(connections), _BLOCK):
            _write_block(file, connections[start : start + _BLOCK])
        file.write(texts)
        packets = _Packets(file, count, marks)
        _engine.row_chunks(
            analysis._source.open(), packets.take, name=analysis.name, shifts=analysis._shifts, progress=progress
        )
        packets.finish()
    first_ns = facts.first_time_ns if packets.first_ns is None else packets.first_ns
    return IndexedCapture(capture, size_bytes, first_ns, count, len(analysis))


def read_indexed(index: Path) -> IndexedCapture:
    """Read which capture an index belongs to, and check that it still exists unchanged.

    Raises:
        SourceError: the file is not an index, is damaged, or the capture is gone or has changed.
    """
    again = "write it again with `tcpwin wireshark index`"
    try:
        with index.open("rb") as file:
            head = file.read(_HEADER.size)
            if len(head) < _HEADER.size or not head.startswith(MAGIC[:13]):
                raise SourceError(f"{index} is not a tcpwin index")
            magic, packets, connections, names_bytes, _, names_sum, head_sum = _HEADER.unpack(head)
            if magic != MAGIC:
                raise SourceError(f"{index} is an index of another version of tcpwin: {again}")
            names = file.read(min(names_bytes, _MOST_NAMES_BYTES))
    except OSError as error:
        raise SourceError(f"{index}: {error.strerror}") from None
    if _sum(head[:-4]) != head_sum or len(names) != names_bytes or names_bytes % 4 or _sum(names) != names_sum:
        raise SourceError(f"{index} is damaged: {again}")
    lines = dict(line.split("\t", 1) for line in names.rstrip(b"\0").decode().splitlines())
    capture = Path(os.fsdecode(unquote_to_bytes(lines["capture"])))
    beside = index.with_name(capture.name)
    # Both may have been moved together.
    found = next((path for path in (beside, capture) if path.is_file()), None)
    if found is None:
        raise SourceError(f"{index} is the index of {capture}, which is gone")
    if found.stat().st_size != int(lines["bytes"]):
        raise SourceError(f"{found} changed since it was indexed: {again}")
    return IndexedCapture(found, int(lines["bytes"]), None, packets, connections)


def _place(sets: dict[str, int], joined: str, first: str) -> int:
    """Return the number of a set of codes, starting from 1; beyond the maximum, that of its first code."""
    if joined not in sets and len(sets) >= _MOST_SETS - 1000:
        joined = first
    return sets.setdefault(joined, len(sets) + 1)


def _names(capture: Path, size_bytes: int, sets: Iterable[str]) -> bytes:
    lists: dict[str, Iterable[str]] = {
        "capture": (quote_from_bytes(os.fsencode(capture.absolute())),),
        "bytes": (str(size_bytes),),
        "limits": LIMITS,
        "confidences": CONFIDENCES,
        "owners": OWNERS,
        "causes": _engine.CAUSES,
        "events": _engine.EVENT_NAMES,
        "findings": sets,
    }
    lines = (key + "\t" + "\t".join(values) + "\n" for key, values in lists.items())
    return _padded("".join(lines).encode())


def _connections(analysis: Analysis, texts: bytearray) -> NDArray[Any]:
    """Return the table of connections, and add the words about each to `texts`, each text once."""
    table = np.zeros(-(-len(analysis) // _BLOCK) * _BLOCK, dtype=_CONNECTION)
    places: dict[bytes, tuple[int, int]] = {}
    for record, connection in zip(table, analysis, strict=False):
        verdict = connection.verdict
        words = view_verdict(verdict)
        answer, fix = (_cut(text) for text in (words.answer, words.fix))
        if (text := _padded(answer + fix)) not in places:
            places[text] = (len(texts), _sum(text))
            texts += text
        text_at, text_sum = places[text]
        if len(texts) > _ABSENT:
            raise TcpwinError(f"{analysis.name} has too many connections for an index; slice it first")
        second = _NO_NAME if verdict.second_limit is None else LIMITS.index(verdict.second_limit)
        record["text_at"], record["sum"] = text_at, text_sum
        record["verdict_bytes"], record["fix_bytes"] = len(answer), len(fix)
        record["limit"], record["second_limit"] = LIMITS.index(verdict.limit), second
        record["confidence"], record["owner"] = CONFIDENCES.index(verdict.confidence), OWNERS.index(verdict.owner)
        record["share"], record["cost_us"] = verdict.share, verdict.cost_ns / 1000
    return table


class _Packets:
    """The table of packets, written block by block as they are read.

    Attributes:
        first_ns: the time of packet 1; None if it contains no TCP.
    """

    def __init__(self, file: IO[bytes], count: int, marks: dict[int, int]) -> None:
        self._file = file
        self._count = count
        self._marked = np.array(list(marks), dtype=np.int64) - 1
        self._sets = np.array(list(marks.values()), dtype=np.uint16)
        self._start = 0
        self._block = self._empty()
        self.first_ns: int | None = None

    def take(self, chunk: dict[str, Any]) -> None:
        """Add rows of the per-segment table, whose frames never descend."""
        place = chunk["frame"][0].astype(np.int64) - 1
        time_ns = chunk["time_ns"][0]
        if self.first_ns is None and len(place) and place[0] == 0:
            self.first_ns = int(time_ns[0])
        table = np.zeros(len(place), dtype=_PACKET)
        table["connection"] = chunk["connection"][0]
        for name, column in (("flight", "bytes_in_flight"), ("window", "window")):
            values, mask = chunk[column]
            table[name] = np.where(mask, _ABSENT, values)
        rtt_ns, mask = chunk["rtt_ns"]
        table["rtt_us"] = np.where(mask, _ABSENT, np.minimum(rtt_ns // 1000, _ABSENT - 1))
        sets = np.array(chunk["event_sets"], dtype=np.uint32)
        table["events"] = sets[chunk["events"][0]]
        table["check"] = np.where(time_ns < 0, 0, time_ns // 1000 % _CHECKED_MODULUS + 1)
        table["cause"] = chunk["cause"][0]
        table["direction"] = ~chunk["direction"][0]
        # A frame may hold several segments: describe the first.
        is_first = np.concatenate(([True], place[1:] != place[:-1]))
        for start in np.unique(place // _BLOCK) * _BLOCK:
            self._go_to(int(start))
            within = (place >= start) & (place < start + _BLOCK) & is_first & (place < self._count)
            free = within.copy()
            free[within] = self._block["connection"][place[within] - start] == _ABSENT
            self._block[place[free] - start] = table[free]

    def finish(self) -> None:
        """Write the remaining blocks."""
        self._go_to(-(-self._count // _BLOCK) * _BLOCK)

    def _go_to(self, start: int) -> None:
        while self._start < start:
            first, last = np.searchsorted(self._marked, (self._start, self._start + _BLOCK))
            self._block["findings"][self._marked[first:last] - self._start] = self._sets[first:last]
            _write_block(self._file, self._block)
            self._start += _BLOCK
            self._block = self._empty()

    @staticmethod
    def _empty() -> NDArray[Any]:
        block = np.zeros(_BLOCK, dtype=_PACKET)
        for name in ("connection", "flight", "window", "rtt_us"):
            block[name] = _ABSENT
        block["cause"] = _NO_NAME
        return block


def _write_block(file: IO[bytes], records: NDArray[Any]) -> None:
    data = records.tobytes()
    file.write(data + struct.pack("<I", _sum(data)))


def _sum(data: bytes) -> int:
    """Sum the 32-bit words."""
    return int(np.frombuffer(data, dtype="<u4").sum(dtype=np.uint64)) & _ABSENT


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _cut(text: str) -> bytes:
    return text.encode()[:_MOST_TEXT_BYTES].decode(errors="ignore").encode()
