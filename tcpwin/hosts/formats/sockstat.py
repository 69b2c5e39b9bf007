"""/proc/net/sockstat and sockstat6: number of sockets and their memory.

In: lines of one or both files, complete or only the TCP line, once or repeatedly. Out: MemorySample. TCP's memory is in
pages, like `net.ipv4.tcp_mem` (net/ipv4/proc.c, sockstat_seq_show).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tcpwin.hosts.format import Format
from tcpwin.hosts.lines import Lines
from tcpwin.hosts.samples import MemorySample

MAX_SECTIONS = 64
"""Samples with more sections are rejected: a kernel has eleven."""
_LINE = re.compile(r"([A-Za-z][A-Za-z0-9]{0,31}):((?: +[a-z_]{1,32} +-?\d{1,20}){1,16}) *")
_KNOWN = re.compile(r"(?:sockets: used|TCP6?: inuse|UDP6?: inuse|UDPLITE6?: inuse|RAW6?: inuse|FRAG6?: inuse) \d+\b")


def recognise(head: list[str]) -> int:
    """Score these lines as sockstat's: a known section with its first word, in at least half of the lines."""
    if not any(_KNOWN.match(text) for text in head):
        return 0
    filled = [text for text in head if text.strip()]
    return 95 if sum(_LINE.fullmatch(text) is not None for text in filled) * 2 >= len(filled) else 60


def read(lines: Lines) -> Iterator[MemorySample]:
    """Yield samples in order: a new one begins at a stamp, and when a section repeats."""
    values: dict[tuple[str, str], int] = {}
    sections: set[str] = set()
    start: tuple[int | None, int] = (None, 0)
    block = lines.block
    for text in lines:
        match = _LINE.fullmatch(text)
        if match is None:
            if text and not text.isspace() and not text.startswith(("==> /proc/", "$ ", "# ")):
                lines.reject(text)
            continue
        section = match[1]
        if block != lines.block or section in sections:
            block = lines.block
            if values:
                yield MemorySample.of(*start, values, lines.page_size_bytes)
            values = {}
            sections = set()
        if len(sections) == MAX_SECTIONS:
            lines.reject(text)
            continue
        if not sections:
            start = (lines.time_ns, lines.number)
        sections.add(section)
        words = match[2].split()
        for name, number in zip(words[::2], words[1::2], strict=True):
            values[section, name] = int(number)
    if values:
        yield MemorySample.of(*start, values, lines.page_size_bytes)


FORMAT = Format("sockstat", "/proc/net/sockstat and sockstat6: sockets and memory of TCP", recognise, read)
