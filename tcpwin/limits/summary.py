"""A capture in a paragraph that people understand who do not know TCP, and the findings that cost most.

In: an analysis, and what rules found. Out: Summary. It judges nothing: each connection's verdict says what limited it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tcpwin.limits.analysis import Analysis
from tcpwin.limits.finding import Finding, Severity
from tcpwin.limits.ranking import MOST_COUNTED, problems, problems_by_limit, worst
from tcpwin.limits.tables import LIMIT_NAMES, MIN_COST_NS, MIN_SHARE
from tcpwin.limits.verdict import Verdict, judge_connection
from tcpwin.units import bytes_text, count_text, short_name, time_text

if TYPE_CHECKING:
    # Rules are asked elsewhere, or not at all; loading what asks them costs more than reading a million packets.
    from tcpwin.limits.findings import Findings

WORST = 3

DAMAGED = "it is damaged"
"""What a summary says of a capture that ends where something is wrong with its file."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A capture in words.

    Attributes:
        text: a paragraph without line breaks.
        parts: the same in lines: what limited how many connections; the worst of them; what to change; the caveat.
        carried: its first sentence: how much, in what time.
        caveat: its last sentence: what the capture lacks; empty where it is complete.
        worst: the three findings that cost most; fewer where fewer cost anything, none where no rules were asked.
        problems: numbers of the connections with a problem by the limit that cost each most, the worst first; of the
            first `MOST_COUNTED` of them.
        verdict: that of the worst connection; None without any.
        serious: what rules warn of although no connection has a problem; empty where there is none, or one connection.
    """

    text: str
    parts: tuple[str, ...]
    carried: str
    caveat: str
    worst: tuple[Finding, ...]
    problems: Mapping[str, tuple[int, ...]]
    verdict: Verdict | None = None
    serious: str = ""


def summarize(analysis: Analysis, found: Findings | None = None) -> Summary:
    """The summary of a capture, with what rules found: by default all of them, with their default thresholds."""
    telling = _Telling(analysis, analysis.findings if found is None else found)
    carried = telling.carried()
    caveat = "".join(telling.caveats())
    parts = tuple(filter(None, (" ".join([carried, *telling.limits()]), *telling.first_change(), caveat)))
    return Summary(
        " ".join(parts),
        parts,
        carried,
        caveat,
        tuple(telling.costly[:WORST]),
        telling.problems,
        telling.verdict,
        telling.serious if telling.count != 1 and not telling.ids else "",
    )


class _Telling:
    """The sentences of one summary."""

    def __init__(self, analysis: Analysis, found: Findings) -> None:
        self.analysis = analysis
        self.found = found
        self.count = len(analysis)

    @cached_property
    def ids(self) -> Sequence[int]:
        """Numbers of the connections with a problem, the worst first."""
        return problems(self.analysis, self.found)

    @cached_property
    def verdict(self) -> Verdict | None:
        """That of the worst connection."""
        ids = self.ids[:1] or worst(self.analysis, 1, self.found)
        return self._judge(ids[0]) if ids else None

    @cached_property
    def problems(self) -> dict[str, tuple[int, ...]]:
        return problems_by_limit(self.analysis, MOST_COUNTED, self.found)

    @cached_property
    def costly(self) -> list[Finding]:
        return [each for each in self.found if each.cost_ns or each.lost_bps]

    def _judge(self, id: int) -> Verdict:
        return judge_connection(self.analysis.connections[id], self.found.of(id))

    def carried(self) -> str:
        if not self.count:
            return "No TCP connection in this capture."
        total = self.analysis._engine.carried_bytes()
        took = time_text(self.analysis.capture.duration_ns or 0)
        connections, captures = count_text(self.count, "connection"), len(self.analysis.capture.files)
        if captures > 1:
            # What lies between captures is nobody's time.
            return f"{connections} in {captures:,} captures, {bytes_text(total)}."
        return f"{'' if self.count == 1 else f'{connections}, '}{bytes_text(total)} in {took}."

    def limits(self) -> Iterable[str]:
        if not self.count or self.verdict is None:
            return
        if self.count == 1:
            yield from sentences_of_one(self.verdict)
            return
        share = f"{MIN_SHARE * 100:.0f} % of the time in which a connection had data to send"
        least = f"Counted as a problem: a limit that costs at least {time_text(MIN_COST_NS)}, and {share}."
        if not self.ids:
            serious = self.serious
            # A refused connection has lost no time, and is no success.
            yield f"{'No connection lost time' if serious else 'No problem found'}. ({least})"
            if serious:
                yield f"Also found: {serious}."
            return
        by_limit = ", ".join(f"{LIMIT_NAMES[limit]} ({len(ids):,})" for limit, ids in self.problems.items())
        yield f"{count_text(len(self.ids), 'connection')} with a problem: {by_limit}. ({least})"

    @cached_property
    def serious(self) -> str:
        """What rules warn of that somebody can mend although no connection has a problem: the first few, in words."""
        warned = [each for each in self.found if each.severity >= Severity.WARNING and each.owner != "nobody"]
        more = [count_text(len(warned) - WORST, "more warning")] if len(warned) > WORST else []
        return "; ".join([*(each.text.removesuffix(".") for each in warned[:WORST]), *more])

    def first_change(self) -> Iterable[str]:
        verdict = self.verdict
        if verdict is None or not verdict.is_problem or verdict.fix is None:
            return
        if self.count == 1:
            yield f"{advice_label('Fix', verdict)}: {verdict.fix}"
            return
        yield " ".join(
            [f"Worst: connection {self.ids[0]}{self._whose(self.ids[0])}. {verdict.text}", *cost_sentence(verdict)]
        )
        yield f"{advice_label('Fix first', verdict)}: {verdict.fix}"

    def _whose(self, id: int) -> str:
        """The capture that a connection is in, where there are several and its time tells which."""
        files = self.analysis.capture.files
        if len(files) < 2:
            return ""
        start_ns = self.analysis.connections[id].start_ns
        fitting = [
            each.file
            for each in files
            if each.first_time_ns is not None
            and each.last_time_ns is not None
            and each.first_time_ns <= start_ns <= each.last_time_ns
        ]
        return f" in {short_name(fitting[0])}" if len(fitting) == 1 else ""

    def caveats(self) -> Iterable[str]:
        """What the capture lacks."""
        capture = self.analysis.capture
        lacks = []
        if capture.warnings:
            lacks.append(DAMAGED)
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
            again = " Copy or record it again: what is damaged was not read." if capture.warnings else ""
            yield f"The capture is incomplete: {', '.join(lacks)}.{again}"


def sentences_of_one(verdict: Verdict) -> Iterable[str]:
    """What limited the only connection, and what that cost."""
    yield verdict.text
    yield from cost_sentence(verdict)


def advice_label(name: str, verdict: Verdict) -> str:
    """``Cost`` or ``Fix``, with the limit that it is about where that is not the one named first."""
    return name if verdict.beside is None else f"{name} ({verdict.beside})"


def cost_sentence(verdict: Verdict) -> Iterable[str]:
    """What the limit that the fix is about cost, unless the verdict's text says it."""
    if verdict.cost_text:
        yield f"{advice_label('Cost', verdict)}: {verdict.cost_text}."
