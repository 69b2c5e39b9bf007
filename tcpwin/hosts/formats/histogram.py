"""Histograms of bpftrace (hist, lhist) and of the bcc tools (funclatency, tcprtt, runqlat, ...).

In: their text, possibly within other text. Out: a HistogramSample each. Sources: bpftrace's output.cpp (K, M, G, T are
powers of 1024; ``[a, b)`` excludes b), bcc's table.py (``a -> b`` includes b).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tcpwin.hosts.format import Format
from tcpwin.hosts.histogram import NANOSECONDS, Bucket, HistogramSample
from tcpwin.hosts.lines import Lines

_MAX_BUCKETS = 100_000
_BOUND = r"-?\d{1,20}[KMGTPE]?"
_MAP = re.compile(r"(?:\d\d:\d\d:\d\d )?@(\w{0,200})(?:\[(.*)\])?:")
_MAP_ROW = re.compile(
    rf"(?:\[(?P<one>{_BOUND})\]|[(\[](?:(?P<low>{_BOUND})|\.\.\.), ?(?:(?P<high>{_BOUND})|\.\.\.)(?P<close>[)\]]))"
    r"\s{1,40}(?P<count>\d{1,20})(?:\s{0,80}\|.*)?"
)
_TOOL_HEADING = re.compile(r"(?P<unit>\S[^:]{0,60}?)\s{0,60}: count\s{1,20}distribution")
_TOOL_ROW = re.compile(
    r"(?P<low>-?\d{1,20})(?: {0,20}-> {0,20}(?P<high>-?\d{1,20}))? {0,40}: (?P<count>\d{1,20}) {0,40}\|.*"
)
_TOOL_SECTION = re.compile(r"(\w[\w ]{0,30}?) = (?:b'([^']{0,200})'|(.{0,200}))")
_AVERAGE = re.compile(r"avg = (-?\d{1,20}) [^,\s]{1,20}, total: -?\d{1,20} [^,\s]{1,20}, count: \d{1,20}.{0,80}")
_CLOCK = re.compile(r"\d\d:\d\d:\d\d")
_KNOWN_TEXT = ("Attaching ", "Attached ", "Tracing", "Detaching", "^C", "|")
_SHIFTS = {"K": 10, "M": 20, "G": 30, "T": 40, "P": 50, "E": 60}


def recognise(head: list[str]) -> int:
    """Score these lines as containing a histogram."""
    lines = [line.strip() for line in head]
    rows = sum(bool(_MAP_ROW.fullmatch(line) and "|" in line) for line in lines)
    tool_rows = sum(bool(_TOOL_ROW.fullmatch(line)) for line in lines)
    if any(_TOOL_HEADING.fullmatch(line) for line in lines):
        return 95
    if rows and any(_MAP.fullmatch(line) for line in lines):
        return 95
    return 60 if rows >= 2 or tool_rows >= 2 else 0


def read(lines: Lines) -> Iterator[HistogramSample]:
    """Yield the histograms in these lines."""
    reader = _Reader(lines)
    for text in lines:
        yield from reader.take(text)
    yield from reader.finish()


class _Reader:
    """State carried from earlier lines."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._block = 0
        self._section = ""
        self._section_key: str | None = None
        self._is_open = False
        self._is_tool = False
        self._buckets: list[Bucket] = []
        self._average: int | None = None
        self._start(name="", key=None, unit=None)

    def take(self, text: str) -> Iterator[HistogramSample]:
        line = text.strip()
        if self._lines.block != self._block:
            yield from self.finish()
            self._block = self._lines.block
        if not line:
            return
        if match := _MAP_ROW.fullmatch(line):
            if not self._is_open or self._is_tool:
                yield from self._begin(name="", key=None, unit=None)
            self._add(_map_bucket(match), text)
        elif match := _TOOL_ROW.fullmatch(line):
            if not self._is_open or not self._is_tool:
                yield from self._begin(name="", key=None, unit=None, is_tool=True)
            self._add(_tool_bucket(match), text)
        elif match := _MAP.fullmatch(line):
            yield from self._begin(name=match[1], key=match[2], unit=_unit_of(match[1]))
        elif match := _TOOL_HEADING.fullmatch(line):
            yield from self._begin(name=self._section, key=self._section_key, unit=match["unit"], is_tool=True)
            self._section, self._section_key = "", None
        elif (match := _AVERAGE.fullmatch(line)) and self._buckets and self._is_tool:
            self._average = int(match[1])
            yield from self.finish()
        elif match := _TOOL_SECTION.fullmatch(line):
            yield from self.finish()
            self._read_section(match)
        elif not line.startswith(_KNOWN_TEXT) and not _CLOCK.fullmatch(line):
            yield from self.finish()
            self._lines.reject(text)

    def finish(self) -> Iterator[HistogramSample]:
        """Yield the finished histogram."""
        if self._buckets:
            yield HistogramSample(
                self._time_ns,
                self._line,
                self._name,
                self._key,
                self._unit,
                tuple(self._buckets),
                self._average,
            )
        self._start(name="", key=None, unit=None)
        self._is_open = False

    def _begin(
        self, *, name: str, key: str | None, unit: str | None, is_tool: bool = False
    ) -> Iterator[HistogramSample]:
        yield from self.finish()
        self._start(name=name, key=key, unit=unit)
        self._is_open = True
        self._is_tool = is_tool

    def _start(self, *, name: str, key: str | None, unit: str | None) -> None:
        self._name, self._key, self._unit = name, key, unit
        self._time_ns, self._line = self._lines.time_ns, self._lines.number
        self._buckets = []
        self._average = None

    def _add(self, bucket: Bucket, text: str) -> None:
        if len(self._buckets) < _MAX_BUCKETS:
            self._buckets.append(bucket)
        else:
            self._lines.reject(text)

    def _read_section(self, match: re.Match[str]) -> None:
        """Read the line above a histogram: its function is the name, anything else the key."""
        value = match[3] if match[2] is None else match[2]
        if match[1] == "Function":
            self._section = value
        else:
            self._section_key = f"{match[1]} = {value}"


def _map_bucket(match: re.Match[str]) -> Bucket:
    count = int(match["count"])
    if match["one"] is not None:
        one = _bound(match["one"])
        return Bucket(one, one + 1, count)
    low = None if match["low"] is None else _bound(match["low"])
    high = None if match["high"] is None else _bound(match["high"]) + (match["close"] == "]")
    return Bucket(low, high, count)


def _tool_bucket(match: re.Match[str]) -> Bucket:
    low = int(match["low"])
    high = low if match["high"] is None else int(match["high"])
    return Bucket(low, high + 1, int(match["count"]))


def _bound(text: str) -> int:
    shift = _SHIFTS.get(text[-1], 0)
    return int(text.rstrip("KMGTPE")) * (1 << shift)


def _unit_of(name: str) -> str | None:
    """Return the unit at the end of a map's name, as in ``@pf_lat_us``."""
    last = name.rpartition("_")[2]
    return last if last in NANOSECONDS else None


FORMAT = Format("histogram", "histograms of bpftrace and of the bcc tools", recognise, read)
