"""Metrics of Prometheus' node_exporter, as text or OpenMetrics: counters, memory of sockets, kernel.

In: lines of one scrape or many (`curl host:9100/metrics`). Out, per scrape: a CounterSample, a MemorySample and a
KernelSample, as far as its metrics allow. ``node_netstat_TcpExt_ListenDrops`` is `nstat`'s TcpExtListenDrops
(node_exporter, collector/netstat_linux.go and sockstat_linux.go).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation

from tcpwin.hosts.format import Format
from tcpwin.hosts.lines import Lines
from tcpwin.hosts.samples import CounterSample, KernelSample, MemorySample

MAX_NAMES = 4096
"""Samples with more names are rejected: a kernel has about 400."""
_MAX_COUNT = 1 << 64
_FIRST_S, _END_S = 31_536_000, 7_289_654_400
# A line may end with its value's time: milliseconds in the text format, seconds in OpenMetrics.
_VALUE = r"(?P<value>[-+0-9.eE]{1,40}|NaN|[-+]?Inf)(?: (?P<time>\d{1,19}(?:\.\d{1,9})?))?"
_LINE = re.compile(rf"(?P<name>[A-Za-z_:][\w:]{{0,200}})(?:\{{(?P<labels>.{{0,4000}})\}})? {_VALUE}\s*")
_NETSTAT = re.compile(
    r"node_netstat_(IpExt|MPTcpExt|TcpExt|(?:Icmp|Ip|UdpLite|Udp)6?|IcmpMsg|Tcp)_([A-Za-z][A-Za-z0-9]+)"
)
_SOCKSTAT = re.compile(r"node_sockstat_([A-Za-z]+[A-Za-z0-9]*)_([a-z_]+)")
_LABEL = re.compile(r'(\w+)="([^"\\]*)"')
_COMMENTS = ("# HELP ", "# TYPE ", "# UNIT ")


def recognise(head: list[str]) -> int:
    """Score these lines as node_exporter's: metrics with its prefix, or a metric's comment among other metrics."""
    own = any(text.startswith(("node_", "# HELP node_", "# TYPE node_")) for text in head)
    metrics = sum(1 for text in head if text.startswith(_COMMENTS) or _LINE.fullmatch(text))
    filled = sum(1 for text in head if text.strip())
    if metrics * 2 < filled or not metrics:
        return 0
    # The program's metrics about Go's memory come first and may fill two hundred lines.
    return 95 if own else 40 if any(text.startswith("# HELP ") for text in head) else 0


@dataclass(slots=True)
class _Scrape:
    line: int
    time_ns: int | None
    counters: dict[str, int] = field(default_factory=dict)
    memory: dict[tuple[str, str], int] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    kernel: KernelSample | None = None
    said_ns: int | None = None

    def samples(self, page_size_bytes: int) -> Iterator[CounterSample | MemorySample | KernelSample]:
        time_ns = self.time_ns if self.time_ns is not None else self.said_ns
        if self.counters:
            yield CounterSample(time_ns, self.line, self.counters, is_increment=False, rates={})
        if self.memory:
            pages, memory_bytes = self.memory.get(("TCP", "mem"), 0), self.memory.pop(("TCP", "mem_bytes"), 0)
            # The program multiplies the two, so any non-zero memory reveals the host's page size.
            page_size_bytes = memory_bytes // pages if pages > 0 and memory_bytes >= pages else page_size_bytes
            yield MemorySample.of(time_ns, self.line, self.memory, page_size_bytes)
        if self.kernel is not None:
            yield KernelSample(time_ns, self.kernel.line, self.kernel.release, self.kernel.hostname)


def read(lines: Lines) -> Iterator[CounterSample | MemorySample | KernelSample]:
    """Yield samples in order: a scrape ends at a stamp, at ``# EOF``, and when a metric without labels repeats.

    Its time is that of a stamp before it, else of its lines, else ``node_time_seconds``, the host's clock.
    """
    scrape: _Scrape | None = None
    block = lines.block
    for text in lines:
        if scrape is not None and (lines.block != block or text.startswith("# EOF")):
            yield from scrape.samples(lines.page_size_bytes)
            scrape = None
        block = lines.block
        if not text or text.isspace() or text.startswith(("#", "$ ")):
            continue
        match = _LINE.fullmatch(text)
        if match is None:
            lines.reject(text)
            continue
        name = match["name"]
        if not name.startswith("node_"):
            continue
        if scrape is not None and match["labels"] is None and name in scrape.seen:
            yield from scrape.samples(lines.page_size_bytes)
            scrape = None
        if scrape is None:
            scrape = _Scrape(lines.number, lines.time_ns)
        if not _take(scrape, match, lines):
            lines.reject(text)
    if scrape is not None:
        yield from scrape.samples(lines.page_size_bytes)


def _take(scrape: _Scrape, match: re.Match[str], lines: Lines) -> bool:
    """Store a metric; return False if its value is invalid."""
    name = match["name"]
    if match["time"] is not None and scrape.said_ns is None:
        scrape.said_ns = _stamp_ns(match["time"])
    if name == "node_uname_info":
        labels = dict(_LABEL.findall(match["labels"] or ""))
        if "release" in labels:
            scrape.kernel = KernelSample(None, lines.number, labels["release"], labels.get("nodename"))
        return True
    counter, memory = _NETSTAT.fullmatch(name), _SOCKSTAT.fullmatch(name)
    if counter is None and memory is None and name != "node_time_seconds":
        return True
    scrape.seen.add(name)
    try:
        value = Decimal(match["value"])
    except InvalidOperation:
        return False
    if name == "node_time_seconds":
        if scrape.said_ns is None and value.is_finite() and _FIRST_S < value < _END_S:
            scrape.said_ns = int(value * 1_000_000_000)
        return True
    if not value.is_finite() or not -_MAX_COUNT < value < _MAX_COUNT or value != int(value):
        return False
    if len(scrape.counters) + len(scrape.memory) == MAX_NAMES:
        return False
    if counter is not None:
        scrape.counters[counter[1] + counter[2]] = int(value)
    elif memory is not None:
        scrape.memory[memory[1], memory[2]] = int(value)
    return True


def _stamp_ns(text: str) -> int | None:
    """Convert milliseconds or seconds since the epoch: text has 13 digits, OpenMetrics 10 and a fraction."""
    number = Decimal(text)
    seconds = number / 1000 if number >= _END_S else number
    return int(seconds * 1_000_000_000) if _FIRST_S < seconds < _END_S else None


FORMAT = Format("node_exporter", "metrics of Prometheus' node_exporter", recognise, read, ("counters",))
