"""Raw /proc/net/netstat, /proc/net/snmp and /proc/net/snmp6: counters since boot.

In: lines of one or several of these files, once or repeatedly. Out: CounterSample, with `nstat`'s names: section and
counter concatenated (iproute2, misc/nstat.c, load_ugly_table).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tcpwin.hosts.format import Format
from tcpwin.hosts.lines import Lines
from tcpwin.hosts.samples import CounterSample

MAX_NAMES = 4096
"""Samples with more names are rejected: a kernel has about 400."""
_MAX_COUNT = 1 << 64
_SECTION = re.compile(r"([A-Z][A-Za-z0-9]{1,31}):((?: +-?[A-Za-z0-9]+)+) *")
_KNOWN = re.compile(r"(?:TcpExt|IpExt|MPTcpExt|Ip|Icmp|IcmpMsg|Tcp|Udp|UdpLite): +[A-Z]")
_IPV6 = re.compile(r"((?:Ip|Icmp|Udp|UdpLite)6[A-Z][A-Za-z0-9]{1,60})\s+(\d{1,20})\s*")
_KEPT_HEADERS = 64


def recognise(head: list[str]) -> int:
    """Score these lines as /proc/net: a known section's header or counters of snmp6, in half of the lines."""
    filled = [text for text in head if text.strip()]
    if any(_KNOWN.match(text) for text in filled):
        return 95 if sum(_SECTION.fullmatch(text) is not None for text in filled) * 2 >= len(filled) else 60
    ipv6 = sum(1 for text in filled if _IPV6.fullmatch(text))
    return 85 if ipv6 and ipv6 * 2 >= len(filled) else 0


class _Headers:
    """Names of header lines, cached because each sample repeats them."""

    def __init__(self) -> None:
        self._names: dict[str, list[str]] = {}

    def names(self, section: str, words: str) -> list[str] | None:
        """Return the full names, or None if the line is not a header."""
        known = self._names.get(section + words)
        if known is None:
            names = words.split()
            if not all(name[0].isalpha() for name in names):
                return None
            known = [section + name for name in names]
            if len(self._names) < _KEPT_HEADERS:
                self._names[section + words] = known
        return known


def read(lines: Lines) -> Iterator[CounterSample]:
    """Yield samples in order: a new one begins at a stamp, and when a name repeats."""
    headers = _Headers()
    values: dict[str, int] = {}
    start: tuple[int | None, int] = (None, 0)
    block = lines.block
    waiting: tuple[str, list[str], str, int] | None = None
    for text in lines:
        if lines.block != block:
            block = lines.block
            if values:
                yield _sample(start, values)
                values = {}
            _forget(waiting, lines)
            waiting = None
        if not text or text.isspace() or text.startswith(("==> /proc/", "$ ", "# ")):
            continue
        if waiting is not None:
            section, names, header, number = waiting
            waiting = None
            found = _counts(section, text)
            if found is not None and len(found) == len(names) and len(values) + len(found) <= MAX_NAMES:
                if values and not values.keys().isdisjoint(names):
                    yield _sample(start, values)
                    values = {}
                if not values:
                    start = (lines.time_ns, number)
                values.update(zip(names, found, strict=True))
                continue
            lines.reject(header, number=number)
            if found is not None:
                lines.reject(text)
                continue
        if ipv6 := _IPV6.fullmatch(text):
            if int(ipv6[2]) >= _MAX_COUNT or len(values) == MAX_NAMES:
                lines.reject(text)
                continue
            if ipv6[1] in values:
                yield _sample(start, values)
                values = {}
            if not values:
                start = (lines.time_ns, lines.number)
            values[ipv6[1]] = int(ipv6[2])
            continue
        match = _SECTION.fullmatch(text)
        known = headers.names(match[1], match[2]) if match else None
        if match is None or known is None:
            lines.reject(text)
        else:
            waiting = (match[1], known, text, lines.number)
    _forget(waiting, lines)
    if values:
        yield _sample(start, values)


def _forget(waiting: tuple[str, list[str], str, int] | None, lines: Lines) -> None:
    """Reject a header without values."""
    if waiting is not None:
        lines.reject(waiting[2], number=waiting[3])


def _counts(section: str, text: str) -> list[int] | None:
    """Return a section's values, or None if the line does not contain them."""
    name, colon, rest = text.partition(":")
    if name != section or not colon or "_" in rest or not rest.isascii():
        return None
    try:
        found = [int(part) for part in rest.split()]
    except ValueError:
        return None
    return found if found and max(found) < _MAX_COUNT and min(found) > -_MAX_COUNT else None


def _sample(start: tuple[int | None, int], values: dict[str, int]) -> CounterSample:
    return CounterSample(start[0], start[1], values, is_increment=False, rates={})


FORMAT = Format("proc_net", "/proc/net/netstat, snmp and snmp6: counters since boot", recognise, read, ("counters",))
