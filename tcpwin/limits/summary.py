"""A capture in a paragraph that people understand who do not know TCP, and the findings that cost most.

In: an analysis, and what rules found, where they were asked. Out: Summary. Connections are picked by the engine; with
many, and no rules asked, nothing is added up, so that the paragraph costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tcpwin.analysis import Analysis
from tcpwin.limits.finding import Finding, Severity
from tcpwin.limits.verdict import MIN_COST_NS, MIN_SHARE, Verdict, judge_connection
from tcpwin.units import bytes_text, count_text, share_text, time_text

if TYPE_CHECKING:
    # Rules are asked elsewhere, or not at all; loading what asks them costs more than reading a million packets.
    from tcpwin.limits.findings import Findings

WORST = 3
FEW = 500
"""Connections that are looked at one by one; of more, columns are read, for which numpy is loaded."""
CAUSES = {
    "window": ("window_cost_ns", "a receiver's window"),
    "loss": ("recovery_ns", "repairs of losses"),
    "idle_restart": ("idle_restart_cost_ns", "restarts after pauses"),
}
"""What holds connections back: the field of a direction that says how long, and the cause in words."""

WHO = {
    "sender": "by the sender, {side}",
    "receiver": "by the receiver, {side}",
    "network": "in the network",
    "application": "by the application on {side}",
}
"""Who can change something, by blame."""
UNCHANGEABLE = ("application", "path", "unknown")
"""Limits that are as they should be: who is to blame beside them is to blame for less."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A capture in words.

    Attributes:
        text: a paragraph without line breaks.
        worst: the three findings that cost most; fewer where fewer cost anything, none where no rules were asked.
        held_back: numbers of the connections that each of `CAUSES` held back; one may be in several.
    """

    text: str
    worst: tuple[Finding, ...]
    held_back: Mapping[str, tuple[int, ...]]


def summarize(analysis: Analysis, found: Findings | None = None) -> Summary:
    """The summary of a capture; with what rules found it says what to change first."""
    telling = _Telling(analysis, found)
    sentences = [telling.carried(), *telling.limits(), *telling.first_change(), *telling.caveats()]
    return Summary(" ".join(sentences), tuple(telling.costly[:WORST]), telling.held_back)


def find_held_back(analysis: Analysis) -> dict[str, tuple[int, ...]]:
    """Connections that each cause cost a direction at least `MIN_COST_NS` and `MIN_SHARE` of its time.

    The window's time is a share of the duration, as for `tcpwin analyze --check`; that of repairs, of the transfer;
    that of restarts, of the duration less the pauses.
    """
    # Of a million short connections none needs a closer look.
    lasting = ("connection.duration_ns", ">=", MIN_COST_NS)
    by_loss = analysis.select(
        "direction", [lasting, ("recovery_ns", ">=", MIN_COST_NS), ("recovery_share", ">=", MIN_SHARE)]
    )
    restarted = analysis.select("direction", [lasting, ("idle_restart_cost_ns", ">=", MIN_COST_NS)])
    by_restarts = []
    for id, name in restarted:
        fields = analysis._engine.direction(id, name == "a_to_b")
        busy_ns = analysis._engine.connection(id)["duration_ns"] - fields["idle_ns"]
        if fields["idle_restart_cost_ns"] >= MIN_SHARE * busy_ns:
            by_restarts.append(id)
    found = {
        "window": analysis.held_back(cost_ns=MIN_COST_NS, share=MIN_SHARE),
        "loss": [id for id, _ in by_loss],
        "idle_restart": by_restarts,
    }
    return {cause: tuple(sorted(set(ids))) for cause, ids in found.items() if ids}


class _Telling:
    """The sentences of one summary."""

    def __init__(self, analysis: Analysis, found: Findings | None) -> None:
        self.analysis = analysis
        self.found = found
        self.count = len(analysis)

    @cached_property
    def held_back(self) -> dict[str, tuple[int, ...]]:
        return find_held_back(self.analysis)

    @cached_property
    def costly(self) -> list[Finding]:
        return [] if self.found is None else [each for each in self.found if each.cost_ns or each.lost_bps]

    @cached_property
    def _first(self) -> Finding | None:
        """The costliest, if it cost enough to be told."""
        return next((each for each in self.costly if each.cost_ns >= MIN_COST_NS or each.lost_bps), None)

    def carried(self) -> str:
        if not self.count:
            return "The capture holds no TCP connection."
        carried = ""
        if self.found is not None or self.count <= FEW:
            # What was acknowledged was carried, though the capture may lack it.
            total = sum(
                max(sizes)
                for name in ("a_to_b", "b_to_a")
                for sizes in zip(self._values(name, "unique_bytes"), self._values(name, "acked_bytes"), strict=True)
            )
            carried = f" carried {bytes_text(total)} of data"
        took = time_text(self.analysis.capture.duration_ns or 0)
        return f"{count_text(self.count, 'connection')}{carried} in {took}."

    def limits(self) -> Iterable[str]:
        if self.count == 1:
            findings = () if self.found is None else self.found.of(0)
            verdict = judge_connection(self.analysis.connections[0], findings)
            yield from told_of_one(verdict)
            if verdict.blame == "nobody" and verdict.direction is not None:
                yield from self._beside(findings)
            return
        if not self.count:
            return
        bound = f"{time_text(MIN_COST_NS)} and {share_text(MIN_SHARE)} of"
        if not self.held_back:
            yield f"No connection was seen to lose {bound} its time to {listed(words for _, words in CAUSES.values())}."
            return
        all_ids = set().union(*self.held_back.values())
        order = sorted(self.held_back, key=lambda cause: -len(self.held_back[cause]))
        told = ", ".join(f"{len(self.held_back[cause]):,} to {CAUSES[cause][1]}{self._time(cause)}" for cause in order)
        whose = "its" if len(all_ids) == 1 else "their"
        yield f"{len(all_ids):,} of them lost at least {bound} {whose} time: {told}."

    def _beside(self, findings: Sequence[Finding]) -> Iterable[str]:
        """What is wrong with a connection that nobody is to blame for, where no sentence on costs tells it."""
        wrong = list(dict.fromkeys(f"{each.code} {each.name}" for each in findings if each.severity > Severity.INFO))
        if self.found is None:
            # The rules were not asked, and some are about what costs no time.
            yield "Nothing was seen to cost it time."
        elif not wrong:
            yield "Nothing was seen to be wrong."
        elif self._first is None:
            more = f" and {count_text(len(wrong) - WORST, 'more kind', 'more kinds')}" if len(wrong) > WORST else ""
            yield f"What was seen to be wrong cost little or nothing: {', '.join(wrong[:WORST])}{more}."

    def _time(self, cause: str) -> str:
        if self.found is None and self.count > FEW:
            return ""
        there, back = (self._values(name, CAUSES[cause][0]) for name in ("a_to_b", "b_to_a"))
        total_ns = sum(max(there[id], back[id]) for id in self.held_back[cause])
        return f" ({time_text(total_ns)} in all)"

    def first_change(self) -> Iterable[str]:
        first = self._first
        if first is None:
            return
        place = "" if first.connection is None else f" of connection {first.connection}"
        cost = f" ({time_text(first.cost_ns)})" if first.cost_ns else ""
        yield f"What cost most is {first.code} {first.name}{place}{cost}."
        if first.remedy is not None:
            yield f"To change first: {first.remedy.text}"

    def caveats(self) -> Iterable[str]:
        """What makes all of it less sure."""
        capture = self.analysis.capture
        lacks = []
        if capture.warnings:
            lacks.append("it is damaged")
        if capture.interface_drops:
            lacks.append(f"its interface dropped {count_text(capture.interface_drops, 'packet')}")
        if capture.missed_bytes:
            lacks.append(f"it lacks {bytes_text(capture.missed_bytes)} that were acknowledged")
        if capture.connections_sampled:
            lacks.append(f"it has only samples of {count_text(capture.connections_sampled, 'connection')}")
        if capture.connections_one_way:
            lacks.append(f"it has only one side of {count_text(capture.connections_one_way, 'connection')}")
        if capture.connections_without_syn:
            lacks.append(f"it lacks the beginning of {count_text(capture.connections_without_syn, 'connection')}")
        if capture.header_cut + capture.options_cut:
            lacks.append("headers are cut")
        if capture.packets and capture.first_time_ns is None:
            lacks.append("it has no times")
        if lacks:
            yield f"The capture is not whole, so this is less sure than it reads: {', '.join(lacks)}."

    def _values(self, direction: str, field: str) -> Sequence[int]:
        """A field of all connections; 0 where there is none."""
        if self.count > FEW:
            values: list[int | None] = self.analysis.connections.column(f"{direction}.{field}").tolist()
        else:
            values = [fields[field] for fields in self._fields[direction]]
        return [value or 0 for value in values]

    @cached_property
    def _fields(self) -> dict[str, list[dict[str, Any]]]:
        engine = self.analysis._engine
        return {
            name: [engine.direction(id, name == "a_to_b") for id in range(self.count)] for name in ("a_to_b", "b_to_a")
        }


def told_of_one(verdict: Verdict) -> Iterable[str]:
    """What limited the only connection, and who can change it."""
    begins = {"limited": "It was", "carried": "It"}.get(verdict.headline.partition(" ")[0], "It is")
    yield f"{begins} {verdict.text if begins == 'It' else verdict.headline}."
    who = WHO.get(verdict.blame, "").format(side=verdict.side)
    if who:
        what = "What went wrong beside it" if verdict.limit in UNCHANGEABLE else "That"
        yield f"{what} {'may' if verdict.confidence == 'low' else 'is to'} be changed {who}."


def listed(words: Iterable[str]) -> str:
    """``a, b or c``."""
    *first, last = words
    return f"{', '.join(first)} or {last}"
