"""/proc/net/sockstat and sockstat6: how many sockets there are and what memory they have.

In: lines of one of the files or both, whole or the TCP line alone, once or many times. Out: MemorySample. Memory of
TCP is in pages, as `net.ipv4.tcp_mem` is (net/ipv4/proc.c, sockstat_seq_show).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tcpwin.hosts.format import Format
from tcpwin.hosts.lines import Lines
from tcpwin.hosts.samples import MemorySample

MAX_SECTIONS = 64
"""More sections than that in one sample are rejected: a kernel has eleven."""
_LINE = re.compile(r"([A-Za-z][A-Za-z0-9]{0,31}):((?: +[a-z_]{1,32} +-?\d{1,20}){1,16}) *")
_KNOWN = re.compile(r"(?:sockets: used|TCP6?: inuse|UDP6?: inuse|UDPLITE6?: inuse|RAW6?: inuse|FRAG6?: inuse) \d+\b")


def recognise(head: list[str]) -> int:
    """How sure these lines are sockstat's: a known section with its first word, and half of the lines or more."""
    if not any(_KNOWN.match(text) for text in head):
        return 0
    filled = [text for text in head if text.strip()]
    return 95 if sum(_LINE.fullmatch(text) is not None for text in filled) * 2 >= len(filled) else 60


def read(lines: Lines) -> Iterator[MemorySample]:
    """Samples in order: a new one begins at a stamp, and where a section comes again."""
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
