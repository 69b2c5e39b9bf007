"""sysstat's `sar -n TCP,ETCP`: growth of TCP's counters, as rates.

In: lines of one run or of a day's file, possibly with other reports in between. Out: a CounterSample per interval, by
`nstat`'s names. Source: sysstat, pr_stats.c (print_net_tcp_stats, print_net_etcp_stats) and man sar, which names the
MIB's counters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from tcpwin.hosts.format import Format
from tcpwin.hosts.lines import Lines
from tcpwin.hosts.samples import CounterSample

NAMES = {
    "active/s": "TcpActiveOpens",
    "passive/s": "TcpPassiveOpens",
    "iseg/s": "TcpInSegs",
    "oseg/s": "TcpOutSegs",
    "atmptf/s": "TcpAttemptFails",
    "estres/s": "TcpEstabResets",
    "retrans/s": "TcpRetransSegs",
    "isegerr/s": "TcpInErrs",
    "orsts/s": "TcpOutRsts",
}
MAX_INTERVALS = 200_000
"""Intervals held until the end, because a file contains one report after the other: two days of seconds."""
SURE_SECONDS = 100
"""Rates have two decimals: in intervals up to this long, 0.00 means no event."""
_REPORTS = (tuple(NAMES)[:4], tuple(NAMES)[4:])
_NS = 1_000_000_000
_HOST = re.compile(r"\S+ \S+ \(\S*\)\s+(?P<date>[\d/.-]{8,10})\s+_\w+_\s.*")
_ROW = re.compile(r"(?P<clock>\d\d:\d\d:\d\d)(?: (?P<half>[AP]M))?\s+(?P<rest>\S.*)")
_AVERAGE = re.compile(r"(?:Average|Summary|Durchschn\.|Moyenne|Media):\s.*")
_RATE = re.compile(r"\d{1,15}[.,]\d\d")


def recognise(head: list[str]) -> int:
    """Score these lines as sar's: the titles of a TCP report."""
    return 95 if any(_titles(text) in _REPORTS for text in head) else 0


def _titles(text: str) -> tuple[str, ...]:
    match = _ROW.fullmatch(text.rstrip())
    return tuple(match["rest"].split()) if match else ()


@dataclass(slots=True)
class _Interval:
    line: int
    seconds: float | None
    rates: dict[str, float] = field(default_factory=dict)

    def sample(self, time_ns: int | None) -> CounterSample:
        values = {}
        for name, rate in self.rates.items():
            if self.seconds is not None and (rate or self.seconds <= SURE_SECONDS):
                values[name] = round(rate * self.seconds)
        rates = {name: rate for name, rate in self.rates.items() if rate}
        return CounterSample(time_ns, self.line, values, is_increment=True, rates=rates)


@dataclass(slots=True)
class _Clock:
    """The date, and the times of the current row and of the titles before it."""

    day: date | None = None
    today: date | None = None
    before: int | None = None
    title: tuple[int, date | None] | None = None

    def begin(self, match: re.Match[str]) -> None:
        """Handle titles: of the next interval, of another report on the same one, or of a report that starts over."""
        now = _seconds(match)
        if self.before != now:
            is_same = self.title is not None and self.title[0] == now
            self.today = self.title[1] if self.title is not None and is_same else self.day
        self.title, self.before = (now, self.today), now

    def read(self, match: re.Match[str]) -> tuple[int, int | None]:
        """Return the seconds of the day, and since the previous row."""
        now = _seconds(match)
        passed = None if self.before is None else now - self.before
        if passed is not None and passed < 0:
            passed += 86_400
            self.today = None if self.today is None else self.today + timedelta(days=1)
        self.before = now
        return now, passed


def _seconds(match: re.Match[str]) -> int:
    hour, minute, second = (int(part) for part in match["clock"].split(":"))
    if match["half"]:
        hour = hour % 12 + (12 if match["half"] == "PM" else 0)
    return (hour * 60 + minute) * 60 + second


def read(lines: Lines) -> Iterator[CounterSample]:
    """Yield a sample per interval, in time order."""
    clock = _Clock()
    titles: tuple[str, ...] = ()
    found: dict[tuple[date | None, int, int], _Interval] = {}
    block = 0
    for text in lines:
        line = text.rstrip()
        if not line or _AVERAGE.fullmatch(line):
            continue
        if host := _HOST.fullmatch(line):
            day = _date(host["date"])
            clock = _Clock(day, day)
            titles, block = (), block + (day is None)
            continue
        match = _ROW.fullmatch(line)
        if match is None:
            lines.reject(text)
            continue
        words = tuple(match["rest"].split())
        if not words[0][0].isdigit():
            # Titles, which a long report repeats, or "LINUX RESTART".
            titles = words
            clock.begin(match)
            continue
        second, passed = clock.read(match)
        if titles not in _REPORTS:
            continue
        if len(words) != len(titles) or not all(_RATE.fullmatch(word) for word in words):
            lines.reject(text)
            continue
        key = (clock.today, block, second)
        if key not in found and len(found) == MAX_INTERVALS:
            lines.reject(text)
            continue
        interval = found.setdefault(key, _Interval(lines.number, passed))
        rates = (float(word.replace(",", ".")) for word in words)
        interval.rates.update(zip((NAMES[title] for title in titles), rates, strict=True))
    for (day, _, second), interval in found.items():
        yield interval.sample(_time_ns(lines, day, second))


def _time_ns(lines: Lines, day: date | None, second: int) -> int | None:
    if day is None:
        return None
    moment = datetime(day.year, day.month, day.day, tzinfo=lines.zone) + timedelta(seconds=second)
    return round(moment.timestamp()) * _NS


def _date(text: str) -> date | None:
    """Parse a date in a locale's format: years have four digits or come last; otherwise the month comes first, as in
    C.
    """
    parts = [int(part) for part in re.split(r"[/.-]", text) if part]
    if len(parts) != 3:
        return None
    if parts[0] > 31:
        year, month, day = parts
    else:
        first, second, year = parts
        is_day_first = first > 12 or "." in text
        day, month = (first, second) if is_day_first else (second, first)
    try:
        return date(year + 2000 if year < 100 else year, month, day)
    except ValueError:
        return None


FORMAT = Format("sar", "sar -n TCP,ETCP: TCP's counters, as rates", recognise, read, ("counters",))
