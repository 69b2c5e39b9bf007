"""Text and JSON of `nstat` (iproute2, misc/nstat.c): counters by name, one sample or many.

In: lines. Out: one CounterSample per run of `nstat`. Samples count as increments only if the numbers show it, because
`nstat` prints increments and counts since boot in the same form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import isfinite

from tcpwin.hosts.counters import are_increments
from tcpwin.hosts.format import Format
from tcpwin.hosts.lines import Lines
from tcpwin.hosts.samples import CounterSample

HELD_SAMPLES = 8
"""Samples held back until it is clear whether they are increments."""
MAX_NAMES = 4096
"""Samples with more names are rejected: a kernel has about 400."""
_MAX_COUNT = (1 << 64) - 1
_FRESH = ("nstat: history is aged out", "nstat: history is stale")
_ROW = re.compile(r"([A-Za-z][A-Za-z0-9]*)\s+(\d{1,20})(?:\s+(-?(?:[0-9.]{1,40}|nan|inf)))?(\s+\(overflow\))?")
# A name of 32 or more characters leaves no space before its value ("%-32s%-16llu").
_GLUED = re.compile(
    r"([A-Za-z][A-Za-z0-9]{30,}?[A-Za-z])(\d{1,20})(?:\s+(-?(?:[0-9.]{1,40}|nan|inf)))?(\s+\(overflow\))?"
)
_JSON = re.compile(r'"([^"\\]{0,200})"\s*:\s*(?:(\{)|(\d{1,20})(?![\d.eE]))|[{},\s]')
_COUNTER = re.compile(
    r'"?(?:TcpExt|IpExt|MPTcpExt|Ip6?|Icmp6?|IcmpMsg|Tcp|Udp6?|UdpLite6?)[A-Z][A-Za-z0-9]*"?\s*:?\s*\d+'
)

_DOCUMENT = re.compile(r'\{?\s*"[^"]{0,200}"\s*:\s*\{\s*"')
_FRAME = re.compile(r'[{},\s]+|"[^"]{0,200}"\s*:\s*\{')
_IPV6 = ("Ip6", "Icmp6", "Udp6", "UdpLite6")


def recognise(head: list[str]) -> int:
    """Score these lines as `nstat`'s: its header, rows with a rate, or JSON with counter names."""
    rows = headers = filled = 0
    for text in head:
        line = text.strip()
        if not line or _FRAME.fullmatch(line):
            continue
        filled += 1
        if line == "#kernel":
            headers += 1
        elif line[0] in '{"':
            if _DOCUMENT.match(line) and _COUNTER.search(line, 0, 4096):
                return 90
            if _COUNTER.match(line):
                rows += 1
        elif _COUNTER.match(line) and (match := _ROW.fullmatch(line)) and (match[3] or not line.startswith(_IPV6)):
            rows += 1
    if headers:
        return 95 if rows or filled == headers else 30
    return 80 if rows and rows * 2 >= filled else 0


def read(lines: Lines) -> Iterator[CounterSample]:
    """Yield samples in order; up to `HELD_SAMPLES` are held back at first to judge what they count."""
    held: list[CounterSample] = []
    samples = _samples(lines)
    for sample in samples:
        held.append(sample)
        if len(held) == HELD_SAMPLES:
            break
    undecided = [sample for sample in held if sample.is_increment is None]
    # Only `nstat` without -a prints a notice about its history: that sample counts since boot, no other does.
    judged = True if len(undecided) < len(held) else are_increments(undecided)
    for sample in held:
        yield _judged(sample, judged)
    for sample in samples:
        yield _judged(sample, judged)


def _judged(sample: CounterSample, judged: bool | None) -> CounterSample:
    if sample.is_increment is not None:
        return sample
    return replace(sample, is_increment=True if sample.resets else judged)


@dataclass(slots=True)
class _Run:
    time_ns: int | None
    line: int
    block: int
    is_since_boot: bool
    values: dict[str, int] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)
    resets: set[str] = field(default_factory=set)

    def sample(self) -> CounterSample:
        kind = False if self.is_since_boot else None
        return CounterSample(self.time_ns, self.line, self.values, kind, self.rates, frozenset(self.resets))


def _samples(lines: Lines) -> Iterator[CounterSample]:
    run: _Run | None = None
    is_fresh = False
    for text in lines:
        if run is not None and run.block != lines.block:
            yield run.sample()
            run = None
        parts = text.split()
        if len(parts) == 3 and run is not None and parts[2] == "0.0":
            name, count, _ = parts
            if (
                name not in run.values
                and count.isdecimal()
                and len(count) < 20
                and name.isalnum()
                and name[0].isalpha()
                and text.isascii()
                and len(run.values) < MAX_NAMES
            ):
                run.values[name] = int(count)
                continue
        if not parts:
            continue
        if text.startswith(_FRESH):
            is_fresh = True
            continue
        if text.startswith(("$ ", "# ")):
            continue
        for name, count, rate, mark in _rows(text, lines):
            if not name or run is None or name in run.values:
                if run is not None:
                    yield run.sample()
                run = _Run(lines.time_ns, lines.number, lines.block, is_fresh)
                is_fresh = False
            if not name:
                continue
            if len(run.values) == MAX_NAMES or int(count) > _MAX_COUNT:
                lines.reject(text)
                continue
            run.values[name] = int(count)
            _note(run, name, rate, mark)
    if run is not None:
        yield run.sample()


def _note(run: _Run, name: str, rate: str, mark: str) -> None:
    if mark:
        run.resets.add(name)
    if rate:
        try:
            number = float(rate)
        except ValueError:
            return
        if number and isfinite(number):
            run.rates[name] = number


def _rows(text: str, lines: Lines) -> Iterator[tuple[str, str, str, str]]:
    """Yield name, count, rate and mark of each counter in a line; an empty name begins a new run."""
    line = text.strip()
    if line[0] == "#":
        yield "", "", "", ""
    elif line[0] in '{}",':
        yield from _json_rows(line, lines)
    elif match := _ROW.fullmatch(line) or _GLUED.fullmatch(line):
        yield match[1], match[2], match[3] or "", match[4] or ""
    else:
        lines.reject(text)


def _json_rows(line: str, lines: Lines) -> Iterator[tuple[str, str, str, str]]:
    position = 0
    while position < len(line):
        match = _JSON.match(line, position)
        if match is None:
            lines.reject(line[position:])
            return
        position = match.end()
        if match[2]:
            yield "", "", "", ""
        elif match[3]:
            if match[1].isalnum():
                yield match[1], match[3], "", ""
            else:
                lines.reject(match[0])


FORMAT = Format("nstat", "nstat: counters of the network stack", recognise, read, ("counters",))
