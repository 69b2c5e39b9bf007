"""Sample times from stamps between samples or before each line.

In: the lines of a file, after its first lines have been inspected. Out: the time in a line, and the rest of the line.
Determined once per file: whether lines have a prefix, whether a bare number is a time, and on which side of its sample
a stamp is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo

MAX_HELD_CHARACTERS = 1 << 24
"""A sample followed by its stamp is held until the stamp appears; longer ones get no time."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONTH_NS = 31 * 86_400 * 1_000_000_000
# 1971 to 2200: numbers or years outside are not snapshot times; 2262 is the last year that 64 bits can hold.
_FIRST_NS = 31_536_000 * 1_000_000_000
_END_NS = 7_289_654_400 * 1_000_000_000
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

# Hours east of UTC. Only names with one offset everywhere in common use; CST is the exception, with a note.
_OFFSETS = {
    **dict.fromkeys(("UTC", "GMT", "Z", "WET", "UCT"), 0.0),
    **dict.fromkeys(("CET", "MET", "WEST"), 1.0),
    **dict.fromkeys(("CEST", "MEST", "EET", "SAST"), 2.0),
    **dict.fromkeys(("EEST", "MSK"), 3.0),
    **dict.fromkeys(("HKT", "SGT", "AWST"), 8.0),
    **dict.fromkeys(("JST", "KST"), 9.0),
    "ACST": 9.5,
    "AEST": 10.0,
    "ACDT": 10.5,
    "AEDT": 11.0,
    "NZST": 12.0,
    "NZDT": 13.0,
    "EDT": -4.0,
    "EST": -5.0,
    "CDT": -5.0,
    "CST": -6.0,
    "MDT": -6.0,
    "MST": -7.0,
    "PDT": -7.0,
    "PST": -8.0,
    "AKDT": -8.0,
    "AKST": -9.0,
    "HST": -10.0,
}
_BEHIND = "a time follows each sample, with no separator in between: it applies to the lines before it"
_UNSURE = "no time precedes the first sample or follows the last: each applies to the lines after it"
_LATE = "the first sample has no time, because its time follows too far after it"
_WITH_NOTE = {"CST": "CST is read as US Central time, 6 hours behind UTC; in China it means another zone"}

_DAY = r"(?:Sun|Mon|Tue|Wed|Thu|Fri|Sat)(?:day|sday|nesday|rsday|urday)?"
_MONTH = r"(?P<month>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?"
_HALF = r"(?: (?P<half>[AaPp][Mm]))?"
_ZONE = r"(?P<zone>[A-Z]{1,5}|[+-]\d\d(?::?\d\d)?)"
_YEAR = r"(?P<year>(?:19|20|21)\d\d)"
_ISO = rf"{_YEAR}-(?P<month>\d\d)-(?P<day>\d\d)[T ]{_CLOCK}"

_DATED = rf"{_YEAR}[-/](?P<month>\d{{1,2}})[-/](?P<day>\d{{1,2}})[T ]{_CLOCK}"
"""As `_ISO`, or with slashes: [2022/9/23 15:43:47]."""

_SENTENCES = (
    # date in the C locale, and ctime: Sat Nov 21 19:22:50 UTC 2026; en_US today: Sat Nov 21 07:22:50 PM UTC 2026.
    rf"{_DAY} {_MONTH} {{1,2}}(?P<day>\d{{1,2}}) {_CLOCK}{_HALF}(?: {_ZONE})? {_YEAR}",
    # date in older en_US: Sat 21 Nov 2026 07:22:50 PM UTC; date -R: Sat, 21 Nov 2026 19:22:50 +0000.
    rf"{_DAY},? {{1,2}}(?P<day>\d{{1,2}}) {_MONTH} {_YEAR},? {_CLOCK}{_HALF}(?: {_ZONE})?",
    # PowerShell's Get-Date: Saturday, November 21, 2026 7:22:50 PM.
    rf"{_DAY}, {_MONTH} (?P<day>\d{{1,2}}), {_YEAR} {_CLOCK}{_HALF}",
    # date -Is, -Ins, --rfc-3339.
    rf"{_ISO}(?: ?{_ZONE})?",
)
_WHOLE = tuple(re.compile(each) for each in _SENTENCES)
_AT_THE_END = tuple(re.compile(rf".*? {each}") for each in _SENTENCES)
_MARK = re.compile(r"(?:###|#{1,2}(?=\s)|Time:)\s*(?P<text>\S.{8,62})")
# A date without %N leaves "N", "%N" or nothing of it.
_NO_FRACTION = r"\.?(?:%?\d?N)?"
_NUMBER = re.compile(rf"(?P<epoch>\d{{9,19}}(?:\.\d{{1,9}})?)|(?P<seconds>\d{{10}}){_NO_FRACTION}")
_BARE = re.compile(rf"(?P<epoch>\d{{10}}(?:\.\d{{1,9}}|\d{{3}}|\d{{6}}|\d{{9}})?)|(?P<seconds>\d{{10}}){_NO_FRACTION}")
_WATCH = re.compile(r"Every \d{1,9}[.,]\d{1,3}s: ")
_SEPARATOR = re.compile(r"---\s*")

_PREFIXES = {
    "epoch": re.compile(r"(?P<epoch>\d{10}(?:\.\d{1,9})?)(?:[ \t](?P<rest>.*))?", re.DOTALL),
    "syslog": re.compile(rf"{_MONTH} {{1,2}}(?P<day>\d{{1,2}}) {_CLOCK}(?:[ \t](?P<rest>.*))?", re.DOTALL),
    "iso": re.compile(rf"{_ISO}(?P<zone>Z| ?[+-]\d\d:?\d\d)?(?:[ \t](?P<rest>.*))?", re.DOTALL),
    "bracket": re.compile(rf"\[{_DATED}(?P<zone>Z| ?[+-]\d\d:?\d\d)?\](?:[ \t](?P<rest>.*))?", re.DOTALL),
    "ctime": re.compile(
        rf"{_DAY} {_MONTH} {{1,2}}(?P<day>\d{{1,2}}) {_CLOCK} {_YEAR}(?:[ \t](?P<rest>.*))?",
        re.DOTALL,
    ),
    "clock": re.compile(r"\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[ \t](?P<rest>.*))?", re.DOTALL),
}
# journalctl's short forms and rsyslog's files: time, host, program[pid]: text.
_LOGGED = re.compile(r"(?P<host>[\w.-]{1,255}) [\w./@+-]{1,64}(?:\[\d{1,10}\])?:(?: (?P<rest>.*))?", re.DOTALL)
# The same without one of them: journalctl --no-hostname, and templates and collectors that write only the host. A
# process number, or a header or an indented line of `ss` after the host, shows that the word is not part of the text.
_PROGRAM = re.compile(r"(?P<host>[\w./@+-]{1,64}\[\d{1,10}\]):(?: (?P<rest>.*))?", re.DOTALL)
# Neither a protocol nor a state: lines of `ss` begin with those.
_HOST = re.compile(
    r"(?!FIN-WAIT|(?:mp)?tcp\b|udp\b)(?P<host>(?=\S*[a-z\d])[\w.-]{1,255})(?:[ \t](?P<rest>.*))?", re.DOTALL
)
_BEHIND_A_HOST = re.compile(r"(?:State|Netid|Recv-Q) .*|(?:[ \t]|#011).*\S.*", re.DOTALL)
_ORIGINS = {"logged": _LOGGED, "program": _PROGRAM, "host": _HOST}
# rsyslog writes tabs like this by default (parser.escapeControlCharactersOnReceive).
_LOGGED_TAB = "#011"
_OF_JOURNAL = "-- "
_STARTS = frozenset(("---", "Eve", "Tim", "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"))
_DIGITS = frozenset("0123456789")
_FIRST_LETTERS = _DIGITS | {"#"}
_PROMPTS = ("$ ", "# ")


@dataclass(frozen=True, slots=True)
class Stamp:
    """The time information in a line.

    Attributes:
        time_ns: nanoseconds since the epoch; None for a separator without a time.
        rest: the line without its prefix; None if the whole line is a stamp.
        is_new_block: whether a new sample begins here.
    """

    time_ns: int | None
    rest: str | None
    is_new_block: bool


@dataclass(frozen=True, slots=True)
class StampStyle:
    """The time format of a file, as far as individual lines do not show it.

    Attributes:
        prefix: prefix of each line: epoch, syslog, iso, bracket, ctime or clock (hours, minutes and seconds without a
            date); None without a prefix.
        origin: text between the prefix and the content, as in a system log: host and program (``logged``), or one of
            them (``program``, ``host``); None without any.
        is_bare: whether a line with only a number of seconds is a time.
        is_trailing: whether the time of a sample follows it, before a separator, as flent's ``ss_iterate.sh`` does.
        is_border: whether a time that follows a sample also ends it, without a separator.
        is_late: whether none of the times that end samples is among the first lines.
        is_unsure: whether a sample precedes the first time, so that times might follow their samples.
    """

    prefix: str | None = None
    origin: str | None = None
    is_bare: bool = False
    is_trailing: bool = False
    is_border: bool = False
    is_late: bool = False
    is_unsure: bool = False


def find_style(head: Sequence[str], *, is_cut: bool = False) -> StampStyle:
    """Detect the time format from a file's raw first lines.

    Args:
        head: the first lines.
        is_cut: whether the file has more.
    """
    lines = [line.rstrip("\r\n") for line in head if line.strip()]
    # journalctl's notices: the start of the journal, and each boot.
    logged = [line for line in lines if not line.startswith(_OF_JOURNAL)]
    for name, pattern in _PREFIXES.items():
        if _is_prefix(pattern, lines):
            return StampStyle(prefix=name, origin=_origin(pattern, lines))
        if _is_prefix(pattern, logged) and (origin := _origin(pattern, logged)) is not None:
            return StampStyle(prefix=name, origin=origin)
    is_bare = len(lines) > 1 and bool(_BARE.fullmatch(lines[0])) and not _is_number(lines[1])
    return StampStyle(is_bare=True) if is_bare else _find_side(lines, is_cut=is_cut)


def _is_prefix(pattern: re.Pattern[str], lines: Sequence[str]) -> bool:
    """Whether all lines begin with the pattern, and at least one continues after it."""
    has_rest = False
    for line in lines:
        match = pattern.fullmatch(line)
        if match is None:
            return False
        has_rest = has_rest or bool((match["rest"] or "").strip())
    return has_rest


def _origin(pattern: re.Pattern[str], lines: Sequence[str]) -> str | None:
    """Return what follows the prefix in all lines: a host and a program, or one of them."""
    rests = [match["rest"] or "" for line in lines if (match := pattern.fullmatch(line)) is not None]
    for origin, form in _ORIGINS.items():
        told = [form.fullmatch(rest) for rest in rests]
        found = [match for match in told if match is not None]
        if not found or len(found) < len(told) or len({match["host"] for match in found}) > 1:
            continue
        if origin != "host" or any(_BEHIND_A_HOST.fullmatch(match["rest"] or "") for match in found):
            return origin
    return None


def _is_number(line: str) -> bool:
    return line.strip().replace(".", "", 1).isdigit()


def _find_side(lines: Sequence[str], *, is_cut: bool) -> StampStyle:
    """Detect whether times precede or follow their samples."""
    look = Stamps()
    kinds = []
    samples: list[list[str]] = [[]]
    for line in lines:
        stamp = look.take(line)
        if stamp is None and line.startswith(_PROMPTS):
            continue
        kinds.append("data" if stamp is None else "separator" if stamp.time_ns is None else "time")
        if stamp is None:
            samples[-1].append(line)
        else:
            samples.append([])
    if not kinds or kinds[0] != "data":
        return StampStyle()
    if "separator" in kinds:
        borders = [index for index, kind in enumerate(kinds) if kind == "separator"]
        return StampStyle(is_trailing=all(kinds[index - 1] == "time" for index in borders))
    if "time" not in kinds:
        return StampStyle(is_trailing=is_cut, is_border=is_cut, is_late=is_cut)
    if not _are_alike(samples[0], samples[1]):
        return StampStyle()
    is_trailing = is_cut or kinds[-1] == "time"
    return StampStyle(is_trailing=is_trailing, is_border=is_trailing, is_unsure=not is_trailing)


def _are_alike(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether the lines before the first time are a sample like the one after it, not a remark at the start of the
    file.
    """
    return first[0].split()[0] == (second or first)[0].split()[0] or len(first) * 2 >= len(second)


class Stamps:
    """Finds the stamps of one file. A line must be given once, in order.

    Args:
        zone: time zone of times without a zone or with an unknown one.
        year: year of the first time without one.
        latest: when the file was written. Without `year`, the first time without a year gets the last year in which it
            precedes this.
        style: the result of `find_style`.

    Attributes:
        notes: sentences about assumptions.
    """

    def __init__(
        self,
        *,
        zone: tzinfo = UTC,
        year: int | None = None,
        latest: datetime | None = None,
        style: StampStyle | None = None,
    ) -> None:
        self.notes: set[str] = set()
        self._zone = zone
        self._year = year
        self._latest = latest
        self._style = style or StampStyle()
        self._prefix = _PREFIXES[self._style.prefix] if self._style.prefix else None
        self._last_month = 0
        self._last_bare: tuple[tuple[int, bool], int] | None = None
        self._before = "data"
        self._held_time_ns: int | None = None
        self._is_held_start = False
        self._is_late = self._style.is_late
        if self._style.is_border and not self._is_late:
            self.notes.add(_BEHIND)
        if self._style.is_unsure:
            self.notes.add(_UNSURE)
        if self._style.prefix == "clock":
            self.notes.add("the times before each line have no date, or are durations: only the order is known")

    @property
    def zone(self) -> tzinfo:
        """Time zone of times without one."""
        return self._zone

    def take(self, line: str) -> Stamp | None:
        """Return the stamp of a line, or None."""
        if self._prefix is not None:
            return self._take_prefix(self._prefix, line)
        if self._style.is_trailing and not self._is_late:
            return self._take_trailing(line)
        if line[:3] not in _STARTS and line[:1] not in _FIRST_LETTERS:
            if line:
                self._before = "data"
            return None
        return self._take_whole(line)

    def ahead(self, lines: Iterable[str]) -> Iterable[str]:
        """Yield the same lines, reading ahead if times follow their samples."""
        return self._hold(lines) if self._style.is_trailing else lines

    def _take_prefix(self, prefix: re.Pattern[str], line: str) -> Stamp | None:
        match = prefix.fullmatch(line)
        is_clock = self._style.prefix == "clock"
        time_ns = None if match is None or is_clock else self._moment_ns(match)
        if match is None or (time_ns is None and not is_clock):
            return self._take_whole(line)
        rest: str = match["rest"] or ""
        if self._style.origin and (logged := _ORIGINS[self._style.origin].fullmatch(rest)) is not None:
            rest = (logged["rest"] or "").replace(_LOGGED_TAB, "\t")
        inner = self._take_whole(rest)
        if inner is None:
            return Stamp(time_ns, rest, is_new_block=False)
        return Stamp(time_ns if inner.time_ns is None else inner.time_ns, None, is_new_block=inner.is_new_block)

    def _take_trailing(self, line: str) -> Stamp | None:
        is_start = self._is_held_start and bool(line.strip())
        stamp = self._take_whole(line)
        if is_start:
            self._is_held_start = False
            return Stamp(self._held_time_ns, line if stamp is None else None, is_new_block=True)
        return None if stamp is None else Stamp(None, None, is_new_block=False)

    def _hold(self, lines: Iterable[str]) -> Iterator[str]:
        held: list[str] = []
        characters = 0
        for line in lines:
            if self._is_late:
                yield line
                if self._is_end(line):
                    self._is_late = False
                    self._is_held_start = True
                    self._held_time_ns = None
                    self.notes |= {_BEHIND, _LATE}
                continue
            held.append(line)
            characters += len(line)
            if self._is_end(line):
                yield from self._release(held)
                characters = 0
            elif characters > MAX_HELD_CHARACTERS:
                self.notes.add("a sample is so long that the time after it was not found")
                yield from self._release(held)
                characters = 0
        yield from self._release(held)

    def _is_end(self, line: str) -> bool:
        """Whether a sample ends with this line, if times follow their samples."""
        if not self._style.is_border:
            return line[:3] == "---" and _SEPARATOR.fullmatch(line) is not None
        if line[:3] not in _STARTS and line[:1] not in _FIRST_LETTERS:
            return False
        return self._find_whole(line.rstrip("\r\n"))[1] is not None

    def _release(self, held: list[str]) -> Iterator[str]:
        """Yield the lines of one sample, with the time of the last stamp among its last lines."""
        self._held_time_ns = None
        self._is_held_start = True
        for line in reversed(held[-4:]):
            stamp = self._take_whole(line.rstrip("\r\n"))
            if stamp is not None and stamp.time_ns is not None:
                self._held_time_ns = stamp.time_ns
                break
        yield from held
        held.clear()

    def _take_whole(self, line: str) -> Stamp | None:
        """Return the stamp of a line that contains nothing else."""
        found, time_ns = self._find_whole(line)
        if not found:
            if line.strip():
                self._before = "data"
            return None
        # A separator next to a time, with nothing in between, is one border, not two.
        kind = "separator" if time_ns is None else "time"
        is_new_block = self._before == "data" or (kind == "time" and self._before == "time")
        self._before = kind if is_new_block or kind == "time" else self._before
        return Stamp(time_ns, None, is_new_block=is_new_block)

    def _find_whole(self, line: str) -> tuple[bool, int | None]:
        first = line[:1]
        if len(line) > 512 or (line[:3] not in _STARTS and first not in _FIRST_LETTERS):
            return False, None
        if first in "#T":
            return self._find_mark(line)
        if first == "-":
            return bool(_SEPARATOR.fullmatch(line)), None
        if first == "E":
            return self._find_watch(line)
        if first in _DIGITS and line[4:5] != "-":
            return self._find_bare(line) if self._style.is_bare else (False, None)
        time_ns = self._sentence_ns(_WHOLE, line)
        return time_ns is not None, time_ns

    def _find_bare(self, line: str) -> tuple[bool, int | None]:
        """Recognise a number as a time: the same format as the first, in order, and within a month of the last."""
        match = _BARE.fullmatch(line.rstrip())
        time_ns = None if match is None else self._number_ns(match)
        if time_ns is None:
            return False, None
        whole, point, _ = line.strip().partition(".")
        form = (len(whole), bool(point))
        last_form, last_ns = self._last_bare or (form, time_ns)
        if form != last_form or not 0 <= time_ns - last_ns <= _MONTH_NS:
            return False, None
        self._last_bare = (form, time_ns)
        return True, time_ns

    def _find_mark(self, line: str) -> tuple[bool, int | None]:
        mark = _MARK.fullmatch(line.rstrip())
        text = mark["text"] if mark else line
        number = _NUMBER.fullmatch(text) if mark else None
        time_ns = self._number_ns(number) if number else self._sentence_ns(_WHOLE, text)
        return time_ns is not None, time_ns

    def _number_ns(self, match: re.Match[str]) -> int | None:
        time_ns = epoch_ns(match["epoch"] or match["seconds"])
        if match["seconds"] and time_ns is not None:
            self.notes.add("times are whole seconds: the `date` of that host has no %N")
        return time_ns

    def _find_watch(self, line: str) -> tuple[bool, int | None]:
        if not _WATCH.match(line):
            return False, None
        return True, self._sentence_ns(_AT_THE_END, line[-64:])

    def _sentence_ns(self, patterns: tuple[re.Pattern[str], ...], text: str) -> int | None:
        for pattern in patterns:
            match = pattern.fullmatch(text.rstrip())
            if match is not None:
                return self._moment_ns(match)
        return None

    def _moment_ns(self, match: re.Match[str]) -> int | None:
        found = match.groupdict()
        if "epoch" in found:
            return epoch_ns(found["epoch"])
        month_text = found["month"]
        month = int(month_text) if month_text.isdigit() else _MONTHS.index(month_text.lower()) + 1
        hour = int(found["hour"])
        if half := found.get("half"):
            if not 1 <= hour <= 12:
                return None
            hour = hour % 12 + (12 if half[0] in "Pp" else 0)
        zone = self._find_zone(found.get("zone"))
        clock = (hour, int(found["minute"]), min(int(found["second"]), 59))
        leap_second = int(found["second"] == "60")
        try:
            if found.get("year"):
                moment = datetime(int(found["year"]), month, int(found["day"]), *clock, tzinfo=zone)
            else:
                moment = self._without_year(month, int(found["day"]), clock, zone)
        except ValueError:
            return None
        seconds = (moment - _EPOCH) // timedelta(seconds=1) + leap_second
        return _in_range(seconds * 1_000_000_000 + int((found["fraction"] or "0").ljust(9, "0")))

    def _without_year(self, month: int, day: int, clock: tuple[int, int, int], zone: tzinfo) -> datetime:
        if self._year is None:
            self._year = self._find_year(month, day, clock, zone)
        elif month < 6 < self._last_month - 3:
            self._year += 1  # From the end of one year into the next.
        self._last_month = month
        return datetime(self._year, month, day, *clock, tzinfo=zone)

    def _find_year(self, month: int, day: int, clock: tuple[int, int, int], zone: tzinfo) -> int:
        """Return the last year in which this time precedes the file's, allowing for time zones."""
        latest = (self._latest or datetime.now(UTC)) + timedelta(days=1)
        for year in range(latest.year, latest.year - 9, -1):
            try:
                moment = datetime(year, month, day, *clock, tzinfo=zone)
            except ValueError:  # The 29th of February.
                continue
            if moment <= latest:
                self.notes.add(f"the times have no year: {year} is assumed, from when the file was written")
                return year
        raise ValueError("this day is in no year")

    def _find_zone(self, name: str | None) -> tzinfo:
        text = (name or "").strip()
        if text in _OFFSETS:
            if text in _WITH_NOTE:
                self.notes.add(_WITH_NOTE[text])
            return timezone(timedelta(hours=_OFFSETS[text]))
        if text[:1] in ("+", "-") and text[1:]:
            digits = text[1:].replace(":", "")
            minutes = int(digits[:2]) * 60 + int(digits[2:] or "0")
            if minutes < 24 * 60:
                return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))
        if text:
            self.notes.add(f"the time zone {text} is unknown: times are read as {self._zone}")
        else:
            self.notes.add(f"the times name no time zone: they are read as {self._zone}")
        return self._zone


def epoch_ns(text: str) -> int | None:
    """Convert seconds since the epoch, or milli-, micro- or nanoseconds depending on the digits.

    None if it is none of these, or outside the years 1971 to 2200.
    """
    whole, _, fraction = text.partition(".")
    scale = {9: 9, 10: 9, 11: 9, 13: 6, 16: 3, 19: 0}.get(len(whole))
    if scale is None or (fraction and scale != 9):
        return None
    return _in_range(int(whole) * (1, 10**3, 10**6, 10**9)[scale // 3] + int(fraction.ljust(9, "0")))


def _in_range(time_ns: int) -> int | None:
    return time_ns if _FIRST_NS <= time_ns < _END_NS else None
