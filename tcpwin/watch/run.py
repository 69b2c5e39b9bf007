"""The recorder: judges the newest packets repeatedly and saves what raises an alert.

In: a source of packets. Out: rounds, alerts and bundles, reported as they happen. Memory is bounded by the kept
packets: each round judges only those and discards its analysis.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tcpwin.errors import OutputError, SnapshotError
from tcpwin.limits import Analysis, Findings, Rule, check
from tcpwin.watch.alerts import Alert, OngoingAlerts, costly
from tcpwin.watch.bundles import Bundles
from tcpwin.watch.chunk import PacketSource
from tcpwin.watch.recent import Recent

SECOND_NS = 1_000_000_000
_POLL_S = 0.2
_SHARE = 50
"""Judging takes 1/_SHARE of the time, or more if the buffered packets would otherwise go unjudged."""
_SMALL_PACKETS = 50_000
"""With more packets, rules use data kept from the first reading and read nothing again."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a recorder.

    Attributes:
        recent_ns, recent_bytes: time and size of the packet buffer.
        every_ns: interval between rounds.
        after_ns: delay between an alert and writing its bundle, to include later packets.
        least_cost_ns: minimum cost of an alert.
        duration_ns: time limit, from the first packet or the start; None for no limit.
        rules: rules that may raise alerts; None for all.
        thresholds: rule thresholds that differ from the defaults.
    """

    recent_ns: int = 60 * SECOND_NS
    recent_bytes: int = 64 << 20
    every_ns: int = 10 * SECOND_NS
    after_ns: int = 5 * SECOND_NS
    least_cost_ns: int = SECOND_NS // 2
    duration_ns: int | None = None
    rules: Sequence[Rule] | None = None
    thresholds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Round:
    """Result of judging the newest packets.

    Attributes:
        time_ns: time of the newest packet; 0 before the first.
        packets, dropped: totals so far; dropped between the interface and this process.
        kept_packets, span_ns: number and time span of the judged packets.
        analysis: their analysis; None without packets.
        findings: findings of the selected rules.
        problems: number of connections held back by each limit.
        took_ns: time needed to judge.
    """

    time_ns: int
    packets: int
    dropped: int
    kept_packets: int
    span_ns: int
    analysis: Analysis | None
    findings: Findings
    problems: Mapping[str, int]
    took_ns: int

    def document(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "type": "round",
            "time_ns": self.time_ns,
            "packets": self.packets,
            "dropped": self.dropped,
            "kept_packets": self.kept_packets,
            "span_ns": self.span_ns,
            "connections": 0 if self.analysis is None else len(self.analysis),
            "problems": dict(self.problems),
            "took_ns": self.took_ns,
        }


def pause_ns(took_ns: int, every_ns: int, span_ns: int) -> int:
    """Return the time from the start of a round to the next: long enough that judging uses little CPU, and short enough
    that every packet is judged twice while it is in the buffer of `span_ns`.
    """
    return max(every_ns, min(took_ns * _SHARE, span_ns // 2))


Notice = Round | Alert | Path | str
"""A round, an alert, a bundle's folder, or a sentence about a problem."""


class Watch:
    """A recorder.

    Args:
        source: source of packets, closed by its opener.
        bundles: where bundles go; None to only report.
        snapshots: snapshot files written by others, to join with the packets and to include in bundles.
        beside: other files to include in bundles.
        tell: called with each notice.
        is_ended: polled to decide whether to end.
        is_wanted: polled to decide whether to judge again without new packets.
    """

    def __init__(
        self,
        source: PacketSource,
        settings: Settings,
        tell: Callable[[Notice], None],
        *,
        bundles: Bundles | None = None,
        snapshots: Callable[[], Sequence[Path]] = tuple,
        beside: Callable[[], Sequence[Path]] = tuple,
        is_ended: Callable[[], bool] = lambda: False,
        is_wanted: Callable[[], bool] = lambda: False,
    ) -> None:
        self._source = source
        self._settings = settings
        self._tell = tell
        self._bundles = bundles
        self._snapshots = snapshots
        self._beside = beside
        self._is_ended = is_ended
        self._is_wanted = is_wanted
        self._recent = Recent(settings.recent_ns, settings.recent_bytes)
        self._header = source.header
        self._known = OngoingAlerts(settings.recent_ns)
        self._pending: list[Alert] = []
        self._struck_ns = self._struck_at = 0
        self._newest_ns = 0
        self._first_ns = 0
        self._judged_packets = 0
        self._unjudged_bytes = 0
        self._trouble = ""

    def run(self) -> None:
        """Watch until the source ends, the time is over, or a stop is requested."""
        begin = time.monotonic_ns()
        due, due_ns, begun = begin + self._settings.every_ns, 0, begin
        with ThreadPoolExecutor(1) as judges:
            judging: Future[Round] | None = None
            while not self._is_over(begin):
                self._take()
                if judging is not None and judging.done():
                    took_ns = judging.result().took_ns
                    due = max(due, begun + pause_ns(took_ns, self._settings.every_ns, self._recent.span_ns))
                    self._take_round(judging.result())
                    judging = None
                due_ns = due_ns or (self._first_ns and self._first_ns + self._settings.every_ns)
                is_due = time.monotonic_ns() >= due or self._is_passing()
                if not self._source.is_live:
                    is_due = is_due or 0 < due_ns <= self._newest_ns
                has_new = self._recent.packets > self._judged_packets
                if is_due and judging is None and (has_new or self._is_wanted()):
                    begun = time.monotonic_ns()
                    due, due_ns = (at + self._settings.every_ns for at in (begun, self._newest_ns))
                    judging = self._begin_round(judges)
                    if not self._source.is_live:
                        # The source loses nothing while waiting, so no alert is missed.
                        self._take_round(judging.result())
                        judging = None
                self._bundle(is_last=False)
            if judging is not None:
                self._take_round(judging.result())
            self._take_round(self._begin_round(judges).result())
            self._bundle(is_last=True)

    def _is_passing(self) -> bool:
        """Whether unjudged packets are about to be evicted: only a file delivers packets as fast as they are read."""
        return not self._source.is_live and self._unjudged_bytes >= self._settings.recent_bytes // 2

    def _is_over(self, begin_ns: int) -> bool:
        duration_ns = self._settings.duration_ns
        if self._source.is_over or self._is_ended():
            return True
        if duration_ns is None:
            return False
        passed_ns = time.monotonic_ns() - begin_ns
        if not self._source.is_live and self._first_ns:
            passed_ns = self._newest_ns - self._first_ns
        return passed_ns >= duration_ns

    def _take(self) -> bool:
        chunks = self._source.take(_POLL_S)
        for chunk in chunks:
            if self._source.header != self._header:
                # A new file, whose records may have another layout.
                self._header = self._source.header
                self._recent = Recent(self._settings.recent_ns, self._settings.recent_bytes)
            self._recent.add(chunk)
            self._unjudged_bytes += len(chunk.records)
            self._first_ns = self._first_ns or chunk.first_ns
            self._newest_ns = max(self._newest_ns, chunk.last_ns)
        if self._source.trouble != self._trouble:
            self._trouble = self._source.trouble
            self._tell(self._trouble or f"{self._source.name}: packets again")
        return bool(chunks)

    def _begin_round(self, judges: ThreadPoolExecutor) -> Future[Round]:
        recent = self._recent
        self._judged_packets = recent.packets
        self._unjudged_bytes = 0
        data = recent.capture(self._header) if recent.kept_packets else b""
        counts = (self._newest_ns, recent.packets, self._source.dropped, recent.kept_packets, recent.span_ns)
        return judges.submit(self._judge, data, counts)

    def _judge(self, data: bytes, counts: tuple[int, int, int, int, int]) -> Round:
        begin_ns = time.monotonic_ns()
        analysis, found, problems = None, Findings(), {}
        if data:
            is_small = counts[3] <= _SMALL_PACKETS
            analysis = self._analyze(data, keeps_events=is_small)
            settings = self._settings
            # The findings of all rules also decide the verdicts and must not be computed twice.
            found = analysis.findings = check(analysis, rereads=is_small)
            if settings.rules is not None or settings.thresholds:
                found = check(analysis, chosen=settings.rules, thresholds=settings.thresholds, rereads=is_small)
            problems = {limit: len(ids) for limit, ids in analysis.summary.problems.items()}
        return Round(*counts, analysis, found, problems, time.monotonic_ns() - begin_ns)

    def _analyze(self, data: bytes, *, keeps_events: bool) -> Analysis:
        from tcpwin.limits import analyze

        snapshots = [path for path in self._snapshots() if path.exists()]
        try:
            # Use one core only, as a guest on this host.
            return analyze(data, snapshots=snapshots, threads=1, events=keeps_events)
        except SnapshotError:
            # These files are still being written and may end in mid-line or be empty.
            return analyze(data, threads=1, events=keeps_events)

    def _take_round(self, round: Round) -> None:
        if round.analysis is not None:
            costly_ones = costly(round.findings, self._settings.least_cost_ns)
            strikes = self._known.strikes(round.analysis, costly_ones, round.time_ns)
            if strikes and not self._pending:
                self._struck_ns, self._struck_at = self._newest_ns, time.monotonic_ns()
            self._pending += strikes
            for strike in strikes:
                self._tell(strike)
        self._tell(round)

    def _bundle(self, *, is_last: bool) -> None:
        # By the packets' clock or the local one: during a stall there may be no packets.
        passed_ns = max(self._newest_ns - self._struck_ns, time.monotonic_ns() - self._struck_at)
        if not self._pending or not (is_last or passed_ns >= self._settings.after_ns):
            return
        strikes, self._pending = self._pending, []
        if self._bundles is None:
            return
        capture = self._recent.capture(self._header)
        try:
            self._tell(self._bundles.write(strikes, capture, [*self._snapshots(), *self._beside()], self._struck_ns))
        except OutputError as error:
            # The disk may have space again at the next alert.
            self._tell(str(error))
