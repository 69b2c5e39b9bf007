"""Compare the same workload before and after a change, by paired connections.

In: two analyses with their findings. Out: a Comparison. `tcpwin.limits.pairs` pairs the connections.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpwin.analysis import DIRECTIONS, DirectionName, Endpoint
from tcpwin.limits.analysis import Analysis
from tcpwin.limits.finding import Finding, Severity
from tcpwin.limits.findings import Findings
from tcpwin.limits.measuring import analysis_of
from tcpwin.limits.pairs import BULK_BYTES, Match, pair, values
from tcpwin.limits.tables import MIN_COST_NS
from tcpwin.limits.verdict import Verdict, judge_connection

if TYPE_CHECKING:
    from tcpwin.hosts import Bundle
    from tcpwin.sources import Packets, Source

TOLERANCE = 0.1
"""Timing and background load alone change a transfer's rate by a few percent between runs."""
MIN_DELAY_NS = 5_000_000
"""A tick of a Linux kernel with HZ=250 is 4 ms, so timers alone change a message's delay by as much."""
MIN_MESSAGES = 5
"""With fewer messages, the 95th percentile is just the maximum."""
MESSAGE_FACTOR = 1.25
"""Message delays are compared if the mean sizes are within this factor."""
MIN_RESENT_SHARE = 0.005
"""Half a percent of the bytes; less is a segment or two of a short transfer."""
MIN_LOST_SHARE = 0.02
"""Share of the duration below which a change in lost time is noise from timers and load."""
WEIGHT = 0.05
"""Share of all pairs' bytes that must be better, or worse, for the whole to be."""
KEPT = 1000
"""Maximum number of pairs kept, most changed first, and of unmatched connections."""


@dataclass(frozen=True, slots=True)
class Change:
    """A quantity before and after.

    Attributes:
        name: its name with the unit: ``goodput_bps``.
        old, new: the values; None if unknown.
        verdict: ``better``, ``worse`` or ``same``; None for a quantity that is shown but not judged.
    """

    name: str
    old: float | None
    new: float | None
    verdict: str | None = None


@dataclass(frozen=True, slots=True)
class FindingChange:
    """The findings of a rule before and after, summed.

    Attributes:
        direction: None for both directions, neither, or the whole capture.
        old, new: numbers of findings; costs are in nanoseconds, lost rates in bits per second.
        verdict: see `Change`.
    """

    code: str
    name: str
    direction: DirectionName | None
    old: int
    new: int
    old_cost_ns: int
    new_cost_ns: int
    old_lost_bps: float
    new_lost_bps: float
    verdict: str | None

    @property
    def kind(self) -> str:
        """``gone``, ``new`` or ``stays``."""
        return "gone" if not self.new else "stays" if self.old else "new"


@dataclass(frozen=True, slots=True)
class Pair:
    """A connection before and after.

    Attributes:
        match: the connection numbers.
        server: address and port of the responder.
        direction: the direction with more data, which the changes describe.
        volume_bytes: payload of that direction, the larger of the two runs.
        changes, findings: the differences.
        old_verdict, new_verdict: the verdicts before and after.
        verdict: ``better``, ``worse``, ``same``, or ``mixed`` if some judged quantities are better and some worse.
    """

    match: Match
    server: str
    direction: DirectionName
    volume_bytes: int
    changes: tuple[Change, ...]
    findings: tuple[FindingChange, ...]
    old_verdict: Verdict
    new_verdict: Verdict
    verdict: str

    def change(self, name: str) -> Change:
        """Return the change of a quantity."""
        return next(each for each in self.changes if each.name == name)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two captures of the same workload.

    Attributes:
        verdict: ``better``, ``worse``, ``same``, or ``unmatched`` if no connection has a partner.
        pairs: the most changed pairs, worse ones first; at most `KEPT`.
        counts: numbers of pairs that are better, worse, same and mixed.
        unmatched_old, unmatched_new: numbers of the connections without a partner, at most `KEPT` each.
        unmatched_old_count, unmatched_new_count: counts of all of them.
        goodput_ratio: median ratio of the new to the old rate over the bulk pairs; None without any.
        path_changes: pairs whose path RTT has changed, so that the runs may not be comparable.
        findings: changes by rule, over all connections.
    """

    verdict: str
    pairs: tuple[Pair, ...]
    counts: Mapping[str, int]
    unmatched_old: tuple[int, ...]
    unmatched_new: tuple[int, ...]
    unmatched_old_count: int
    unmatched_new_count: int
    goodput_ratio: float | None
    path_changes: int
    findings: tuple[FindingChange, ...]


def compare(
    old: Packets | Source | Bundle | Analysis,
    new: Packets | Source | Bundle | Analysis,
    *,
    old_findings: Findings | None = None,
    new_findings: Findings | None = None,
    tolerance: float = TOLERANCE,
) -> Comparison:
    """Compare two captures of the same workload, made before and after a change.

    A pair is judged by the goodput of a bulk transfer and the delay of messages (95th percentile). If neither differs
    or neither is known, it is judged by retransmitted bytes, the verdicts' lost time and the cost of findings. The
    whole is worse (or better) if such pairs carry at least `WEIGHT` of all bytes, and more than the opposite ones.

    Args:
        old: the capture before the change: its analysis, or anything that :func:`tcpwin.analyze` reads.
        new: the capture after it.
        old_findings: the findings of `old`, by default those of all rules.
        new_findings: the same for `new`.
        tolerance: share by which a quantity may differ and still count as the same.

    Raises:
        TcpwinError: a capture cannot be read; see :func:`tcpwin.analyze`.
    """
    from statistics import median

    old, new = analysis_of(old), analysis_of(new)
    before = _index(old.findings if old_findings is None else old_findings)
    after = _index(new.findings if new_findings is None else new_findings)
    matches, left_old, left_new = pair(old, new)
    rows_old, rows_new = _Rows(old), _Rows(new)
    tally = _Tally()
    kept: list[tuple[tuple[int, float, int], int, Pair]] = []
    for number, match in enumerate(matches):
        each = _compare_pair(rows_old, rows_new, match, before.get(match.old, []), after.get(match.new, []), tolerance)
        tally.add(each, tolerance)
        item = (_rank(each), -number, each)
        if len(kept) < KEPT:
            heapq.heappush(kept, item)
        else:
            heapq.heappushpop(kept, item)
    whole = _findings(_all(before), _all(after), tolerance, by_direction=False)
    return Comparison(
        verdict=tally.verdict(),
        pairs=tuple(each for _, _, each in sorted(kept, reverse=True)),
        counts=dict(tally.counts),
        unmatched_old=tuple(left_old[:KEPT]),
        unmatched_new=tuple(left_new[:KEPT]),
        unmatched_old_count=len(left_old),
        unmatched_new_count=len(left_new),
        goodput_ratio=median(tally.ratios) if tally.ratios else None,
        path_changes=tally.path_changes,
        findings=whole,
    )


class _Rows:
    """Fields of an analysis's connections, loaded by column on demand."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis
        self._columns: dict[str, list[Any]] = {}

    def get(self, id: int, name: str) -> Any:
        if name not in self._columns:
            self._columns[name] = values(self._analysis, name)
        return self._columns[name][id]

    def number(self, id: int, name: str) -> float:
        return self.get(id, name) or 0

    def verdict(self, id: int, findings: Sequence[Finding]) -> Verdict:
        return judge_connection(self._analysis.connections[id], findings)

    def volume(self, id: int, direction: DirectionName) -> int:
        return int(max(self.number(id, f"{direction}.unique_bytes"), self.number(id, f"{direction}.acked_bytes")))


class _Tally:
    """Sums over the pairs."""

    def __init__(self) -> None:
        self.counts = {"better": 0, "worse": 0, "same": 0, "mixed": 0}
        self.ratios: list[float] = []
        self.path_changes = 0
        self._weights = {"better": 0, "worse": 0, "same": 0, "mixed": 0}

    def add(self, each: Pair, tolerance: float) -> None:
        self.counts[each.verdict] += 1
        self._weights[each.verdict] += max(each.volume_bytes, 1)
        goodput, path = each.change("goodput_bps"), each.change("path_rtt_ns")
        if goodput.verdict is not None and goodput.old and goodput.new is not None:
            self.ratios.append(goodput.new / goodput.old)
        self.path_changes += _differs(path, tolerance, MIN_DELAY_NS) != "same"

    def verdict(self) -> str:
        total = sum(self._weights.values())
        if not total:
            return "unmatched"
        better, worse = self._weights["better"] / total, self._weights["worse"] / total
        if max(better, worse) < WEIGHT or better == worse:
            return "same"
        return "worse" if worse > better else "better"


def _compare_pair(
    old: _Rows, new: _Rows, match: Match, before: list[Finding], after: list[Finding], tolerance: float
) -> Pair:
    sizes = {each: old.volume(match.old, each) + new.volume(match.new, each) for each in DIRECTIONS}
    direction = max(DIRECTIONS, key=lambda each: sizes[each])
    volumes = old.volume(match.old, direction), new.volume(match.new, direction)

    def both(name: str) -> Change:
        return Change(name.rpartition(".")[2], old.get(match.old, name), new.get(match.new, name))

    goodput = both(f"{direction}.goodput_bps")
    if min(volumes) >= BULK_BYTES:
        goodput = _judged(goodput, tolerance, higher_is_better=True)
    delay = both(f"{direction}.message_delay_p95_ns")
    messages = both(f"{direction}.messages")
    counts = messages.old or 0, messages.new or 0
    if min(counts) >= MIN_MESSAGES:
        mean = sorted(volume / count for volume, count in zip(volumes, counts, strict=True))
        if mean[1] <= MESSAGE_FACTOR * mean[0]:
            delay = _judged(delay, tolerance, at_least=MIN_DELAY_NS)
    resent = both(f"{direction}.resent_bytes")
    resent_share = Change("resent_share", _share(resent.old, volumes[0]), _share(resent.new, volumes[1]))
    durations = both("duration_ns")
    verdicts = old.verdict(match.old, before), new.verdict(match.new, after)
    lost = Change("lost_ns", verdicts[0].lost_ns, verdicts[1].lost_ns)
    least_ns = max(MIN_COST_NS, MIN_LOST_SHARE * min(durations.old or 0, durations.new or 0))
    causes = [
        _judged(resent_share, tolerance, at_least=MIN_RESENT_SHARE),
        _judged(lost, tolerance, at_least=least_ns),
    ]
    findings = _findings(before, after, tolerance)
    changes = (
        goodput,
        delay,
        Change("volume_bytes", *volumes),
        durations,
        both("path_rtt_ns"),
        both(f"{direction}.receive_window_max_bytes"),
        both(f"{direction}.retransmissions"),
        both("stall_ns"),
        both(f"{direction}.zero_window_ns"),
        *causes,
    )
    verdict = _together([goodput.verdict, delay.verdict])
    if verdict == "same":
        verdict = _together([each.verdict for each in causes] + [each.verdict for each in findings])
    server = str(Endpoint(old.get(match.old, "b_address"), old.get(match.old, "b_port")))
    return Pair(match, server, direction, max(volumes), changes, findings, *verdicts, verdict)


def _judged(change: Change, tolerance: float, *, at_least: float = 0.0, higher_is_better: bool = False) -> Change:
    verdict = _differs(change, tolerance, at_least)
    if higher_is_better:
        verdict = {"worse": "better", "better": "worse", "same": "same"}[verdict]
    return Change(change.name, change.old, change.new, verdict)


def _differs(change: Change, tolerance: float, at_least: float) -> str:
    """Return ``worse`` if it grew, ``better`` if it fell, by more than the tolerance and at least `at_least`."""
    if change.old is None or change.new is None:
        return "same"
    grown = change.new - change.old
    if abs(grown) < at_least or abs(grown) <= tolerance * change.old:
        return "same"
    return "worse" if grown > 0 else "better"


def _together(verdicts: Iterable[str | None]) -> str:
    said = set(verdicts) & {"better", "worse"}
    if len(said) == 2:
        return "mixed"
    return "better" if "better" in said else "worse" if said else "same"


def _share(part: float | None, whole: int) -> float | None:
    return None if part is None or not whole else part / whole


def _rank(each: Pair) -> tuple[int, float, int]:
    """Return the sort key: worse, mixed, better, same; then the change in rate, then the volume, largest first."""
    order = {"worse": 3, "mixed": 2, "better": 1, "same": 0}[each.verdict]
    goodput = each.change("goodput_bps")
    low, high = sorted((goodput.old or 0.0, goodput.new or 0.0))
    factor = high / low if goodput.verdict is not None and low > 0 else 1.0
    return order, factor, each.volume_bytes


def _index(found: Findings) -> dict[int | None, list[Finding]]:
    by_connection: dict[int | None, list[Finding]] = {}
    for each in found:
        by_connection.setdefault(each.connection, []).append(each)
    return by_connection


def _all(by_connection: Mapping[int | None, list[Finding]]) -> list[Finding]:
    return [each for some in by_connection.values() for each in some]


def _findings(
    before: Iterable[Finding], after: Iterable[Finding], tolerance: float, *, by_direction: bool = True
) -> tuple[FindingChange, ...]:
    """Sum findings by rule and optionally direction, the largest change in cost first."""
    groups: dict[tuple[str, DirectionName | None], tuple[list[Finding], list[Finding]]] = {}
    for place, some in enumerate((before, after)):
        for each in some:
            key = each.code, each.direction if by_direction else None
            groups.setdefault(key, ([], []))[place].append(each)
    changes = [_change(key[1], *both, tolerance) for key, both in groups.items()]
    return tuple(sorted(changes, key=lambda each: (-abs(each.new_cost_ns - each.old_cost_ns), each.code)))


def _change(
    direction: DirectionName | None, before: list[Finding], after: list[Finding], tolerance: float
) -> FindingChange:
    old_cost_ns, new_cost_ns = (sum(each.cost_ns for each in some) for some in (before, after))
    old_lost_bps, new_lost_bps = (float(sum(each.lost_bps or 0 for each in some)) for some in (before, after))
    first = (before or after)[0]
    verdict = None
    if any(each.severity >= Severity.WARNING for each in (*before, *after)):
        verdict = _together(
            (
                _differs(Change("cost_ns", old_cost_ns, new_cost_ns), tolerance, MIN_COST_NS),
                _differs(Change("lost_bps", old_lost_bps, new_lost_bps), tolerance, 0.0),
            )
        )
        verdict = "same" if verdict == "mixed" else verdict
    return FindingChange(
        code=first.code,
        name=first.name,
        direction=direction,
        old=len(before),
        new=len(after),
        old_cost_ns=old_cost_ns,
        new_cost_ns=new_cost_ns,
        old_lost_bps=old_lost_bps,
        new_lost_bps=new_lost_bps,
        verdict=verdict,
    )
