"""The recorder: the newest packets are judged again and again, and what strikes is kept.

In: a source of packets. Out: rounds, strikes and bundles, told as they happen. Memory is bounded by the packets that
are kept: each round judges those alone, and forgets what it found.
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
from tcpwin.watch.bundles import Bundles
from tcpwin.watch.chunk import PacketSource
from tcpwin.watch.recent import Recent
from tcpwin.watch.strikes import Known, Strike, costly

SECOND_NS = 1_000_000_000
_POLL_S = 0.2
_SHARE = 50
"""Judging takes one of so many parts of the time, where the packets kept allow it."""
_SMALL_PACKETS = 50_000
"""Of more, rules look at what the first reading kept, and read nothing again."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How to watch.

    Attributes:
        recent_ns, recent_bytes: how much of the newest packets is kept.
        every_ns: from one round to the next.
        after_ns: so long after something struck its bundle is written, with what came since.
        least_cost_ns: what costs less does not strike.
        duration_ns: when to end, from the first packet or the beginning; None for never.
        rules: which may strike; None for all.
        thresholds: of rules, other than the defaults.
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
    """The newest packets, judged.

    Attributes:
        time_ns: of the newest packet; 0 before the first.
        packets, dropped: all so far; dropped between the interface and us.
        kept_packets, span_ns: those that were judged, and the time from the first to the last.
        analysis: of them; None while there are none.
        findings: by the rules that were asked.
        problems: how many connections each limit holds back.
        took_ns: judging took so long.
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
        """What JSON has of it."""
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
    """From the beginning of a round that took so long to the next: long enough that judging takes little of a core, and
    short enough that every packet is judged twice before it leaves, `span_ns` being what is kept."""
    return max(every_ns, min(took_ns * _SHARE, span_ns // 2))


Told = Round | Strike | Path | str
"""A round, something that struck, the folder of a bundle, or a trouble in a sentence."""


class Watch:
    """A recorder.

    Args:
        source: of packets; whoever opened it closes it.
        bundles: where bundles go; None to tell only.
        snapshots: files that somebody else writes beside, which are put beside packets, too, and belong into bundles.
        beside: other files that belong into bundles.
        tell: called with what happens.
        is_ended: asked often whether to end.
        is_wanted: asked often whether the newest packets are to be judged once more, though none came since.
    """

    def __init__(
        self,
        source: PacketSource,
        settings: Settings,
        tell: Callable[[Told], None],
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
        self._known = Known(settings.recent_ns)
        self._struck: list[Strike] = []
        self._struck_ns = self._struck_at = 0
        self._newest_ns = 0
        self._first_ns = 0
        self._judged_packets = 0
        self._unjudged_bytes = 0
        self._trouble = ""

    def run(self) -> None:
        """Watch until the end: of the source, of the time, or when it is asked to."""
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
                        # Nothing is lost while it waits, and nothing strikes unseen.
                        self._take_round(judging.result())
                        judging = None
                self._bundle(is_last=False)
            if judging is not None:
                self._take_round(judging.result())
            self._take_round(self._begin_round(judges).result())
            self._bundle(is_last=True)

    def _is_passing(self) -> bool:
        """Packets of a file come as fast as they are read: none is to leave that was never judged."""
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
                # Another file, whose records may be of another layout.
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
            # Of all rules together what they find decides the verdicts, too, and is not to be found once more.
            found = analysis.findings = check(analysis, rereads=is_small)
            if settings.rules is not None or settings.thresholds:
                found = check(analysis, chosen=settings.rules, thresholds=settings.thresholds, rereads=is_small)
            problems = {limit: len(ids) for limit, ids in analysis.summary.problems.items()}
        return Round(*counts, analysis, found, problems, time.monotonic_ns() - begin_ns)

    def _analyze(self, data: bytes, *, keeps_events: bool) -> Analysis:
        from tcpwin.limits import analyze

        snapshots = [path for path in self._snapshots() if path.exists()]
        try:
            # It is a guest on its host: one core at a time.
            return analyze(data, snapshots=snapshots, threads=1, events=keeps_events)
        except SnapshotError:
            # They are still being written: they may end in the middle of a line, or say nothing yet.
            return analyze(data, threads=1, events=keeps_events)

    def _take_round(self, round: Round) -> None:
        if round.analysis is not None:
            costly_ones = costly(round.findings, self._settings.least_cost_ns)
            strikes = self._known.strikes(round.analysis, costly_ones, round.time_ns)
            if strikes and not self._struck:
                self._struck_ns, self._struck_at = self._newest_ns, time.monotonic_ns()
            self._struck += strikes
            for strike in strikes:
                self._tell(strike)
        self._tell(round)

    def _bundle(self, *, is_last: bool) -> None:
        # By the packets' clock, or by ours: in a stall there may be no packets.
        passed_ns = max(self._newest_ns - self._struck_ns, time.monotonic_ns() - self._struck_at)
        if not self._struck or not (is_last or passed_ns >= self._settings.after_ns):
            return
        strikes, self._struck = self._struck, []
        if self._bundles is None:
            return
        capture = self._recent.capture(self._header)
        try:
            self._tell(self._bundles.write(strikes, capture, [*self._snapshots(), *self._beside()], self._struck_ns))
        except OutputError as error:
            # The disk may have room again when the next one strikes.
            self._tell(str(error))
