"""Text of iperf3, and of iperf 2 where its rows look the same: intervals, sums and summaries of TCP tests.

In: its lines, including several rows joined into one line as in mail archives. Out: a ThroughputSample per row. Rows of
UDP tests are ignored. Sources: iperf_locale.c (rows), units.c (1024 for bytes, 1000 for bits).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from tcpwin.hosts.format import Format
from tcpwin.hosts.lines import Lines
from tcpwin.hosts.throughput import ThroughputSample

_NUMBER = r"\d{1,18}(?:\.\d{1,9})?"
_PIECE = re.compile(
    r"\[ ID\](?:\[Role\])? {1,3}Interval[ \t]{1,40}Transfer[ \t]{1,40}(?:Bitrate|Bandwidth)(?P<columns>[^\[]{0,80})"
    r"|\[ {0,3}(?P<stream>\d{1,9}|SUM)\](?:\[(?P<role>[TR]X-[CS])\])?[ \t]{1,9}"
    rf"(?P<start>{_NUMBER})-[ \t]{{0,9}}(?P<end>{_NUMBER})[ \t]{{1,9}}sec[ \t]{{1,9}}"
    rf"(?P<size>{_NUMBER})[ \t]{{1,3}}(?P<size_unit>[KMGT]?)Bytes[ \t]{{1,9}}"
    rf"(?P<rate>{_NUMBER})[ \t]{{1,3}}(?P<rate_unit>[KMGT]?)(?P<rate_of>bits|Bytes)/sec(?![a-z])"
    rf"(?:[ \t]{{1,9}}(?P<jitter>{_NUMBER}[ \t]{{1,3}}ms[ \t]))?"
    r"(?:[ \t]{1,9}(?P<retransmissions>\d{1,18})(?=[ \t]|$)"
    rf"(?:[ \t]{{1,9}}(?P<cwnd>{_NUMBER})[ \t]{{1,3}}(?P<cwnd_unit>[KMGT]?)Bytes"
    r"(?:[ \t]{1,9}(?P<rtt>\d{1,9})ms)?)?)?"
    r"(?:[ \t]{1,40}(?P<word>\(omitted\)|sender|receiver))?"
)
_ADDRESS_LINE = re.compile(r"\[ {0,3}\d{1,9}\] local \S")
_KNOWN_TEXT = re.compile(
    r"Connecting to host |Reverse mode|Server listening on |Accepted connection from |iperf Done|iperf 3\.|Linux "
    r"|Control connection MSS|Cookie: |Starting Test: |Test Complete|CPU Utilization|(?:snd|rcv)_tcp_congestion "
    r"|TCP MSS|Time: |Client connecting to |TCP window size|Target Bitrate|Client \S+ connected|Server output:|\^C"
    r"|iperf3: interrupt|\[ {0,3}\d{1,9}\] (?:Sent \d|WARNING)"
)
_RULE = re.compile(r"(?:- ){3,}-?\s*|-{5,}\s*")
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def recognise(head: list[str]) -> int:
    """Score these lines as iperf3 output."""
    found = 0
    for line in head:
        for match in _PIECE.finditer(line):
            found += 1 if match["start"] else 0
    has_heading = any(match["start"] is None for line in head for match in _PIECE.finditer(line))
    if found:
        return 95 if has_heading or found > 1 else 80
    return 70 if has_heading else 0


def read(lines: Lines) -> Iterator[ThroughputSample]:
    """Yield samples of the rows in these lines."""
    test = _Test()
    for text in lines:
        is_known = False
        for match in _PIECE.finditer(text):
            is_known = True
            if match["start"] is None:
                test.read_columns(match["columns"])
            elif not test.is_udp and (test.has_heading or match["jitter"] is None):
                yield test.sample(match, lines)
        stripped = text.strip()
        if is_known or not stripped or _KNOWN_TEXT.match(stripped) or _ADDRESS_LINE.match(stripped):
            continue
        if not _RULE.fullmatch(stripped):
            lines.reject(text)


class _Test:
    """The test that the rows belong to."""

    def __init__(self) -> None:
        self.is_udp = False
        self.has_heading = False
        self._run = -1
        self._block: int | None = None
        self._begin_ns: int | None = None
        self._omitted_ns = 0
        self._ends_ns: dict[tuple[str, str], list[int]] = {}
        self._summaries: set[tuple[str, str, str]] = set()
        self._has_retransmissions = True
        self._has_rtt = False

    def read_columns(self, columns: str) -> None:
        """Read from the heading which columns follow the rate."""
        self.has_heading = True
        self.is_udp = "Jitter" in columns or "Datagrams" in columns
        self._has_retransmissions = "Retr" in columns
        self._has_rtt = "RTT" in columns

    def sample(self, match: re.Match[str], lines: Lines) -> ThroughputSample:
        key = (match["stream"], match["role"] or "")
        start_ns, end_ns = _nanoseconds(match["start"]), _nanoseconds(match["end"])
        word = match["word"]
        before = self._ends_ns.get(key, [])
        # iperf 2 does not label the summary: it is the row that spans all rows before it.
        is_summary = word in ("sender", "receiver") or (start_ns == 0 and len(before) > 1 and end_ns >= max(before))
        is_omitted = word == "(omitted)"
        is_again = start_ns == 0 and bool(before)
        is_new = (*key, word) in self._summaries if is_summary else is_again
        if self._run < 0 or is_new or self._block != lines.block:
            self._begin(lines)
        if is_summary:
            self._summaries.add((*key, word))
        elif is_omitted:
            self._omitted_ns = max(self._omitted_ns, end_ns)
        else:
            ends = self._ends_ns.setdefault(key, []) if len(self._ends_ns) < 10_000 else []
            ends[:] = [*ends[-1:], end_ns]
        retransmissions = match["retransmissions"] if self._has_retransmissions else None
        return ThroughputSample(
            # iperf3 restarts at 0 after the omitted time (omit_timer_proc).
            time_ns=self._time_ns(lines, end_ns if is_omitted else end_ns + self._omitted_ns),
            line=lines.number,
            run=self._run,
            stream=None if match["stream"] == "SUM" else int(match["stream"]),
            start_ns=start_ns,
            end_ns=end_ns,
            transferred_bytes=_bytes(match["size"], match["size_unit"]),
            rate_bps=_bits(match["rate"], match["rate_unit"], match["rate_of"]),
            retransmissions=None if retransmissions is None else int(retransmissions),
            cwnd_bytes=None if match["cwnd"] is None else _bytes(match["cwnd"], match["cwnd_unit"]),
            # A column of Apple's iperf3-darwin.
            rtt_ns=int(match["rtt"]) * 1_000_000 if self._has_rtt and match["rtt"] else None,
            is_summary=is_summary,
            is_omitted=is_omitted,
            side=word if word in ("sender", "receiver") else None,
            role=match["role"],
        )

    def _begin(self, lines: Lines) -> None:
        # A block's time applies to its first test only: the start of a second one is unknown.
        self._begin_ns = lines.time_ns if self._block != lines.block and lines.block > 0 else None
        self._run += 1
        self._block = lines.block
        self._omitted_ns = 0
        self._ends_ns = {}
        self._summaries = set()

    def _time_ns(self, lines: Lines, end_ns: int) -> int | None:
        """Return the time of a row: a stamp before the test gives its start, a prefix of the row the interval's end."""
        if lines.block == 0:
            return lines.time_ns
        return None if self._begin_ns is None else self._begin_ns + end_ns


def _nanoseconds(seconds: str) -> int:
    return int(Decimal(seconds).scaleb(9))


def _bytes(number: str, unit: str) -> int:
    return int((Decimal(number) * 1024 ** _POWERS[unit]).to_integral_value())


def _bits(number: str, unit: str, of: str) -> float:
    if of == "Bytes":
        return float(Decimal(number) * 1024 ** _POWERS[unit] * 8)
    return float(Decimal(number) * 1000 ** _POWERS[unit])


FORMAT = Format("iperf3", "throughput by interval: text of iperf3", recognise, read)
