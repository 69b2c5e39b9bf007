"""Summarize a capture in a paragraph for readers who do not know TCP, with the costliest findings.

In: an analysis and findings. Out: Summary. Judges nothing: the limits come from the connections' verdicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tcpwin.limits.analysis import Analysis
from tcpwin.limits.finding import Finding, Severity
from tcpwin.limits.ranking import problems, problems_by_limit, worst
from tcpwin.limits.tables import LIMIT_NAMES, MIN_COST_NS, MIN_SHARE
from tcpwin.limits.verdict import Verdict, judge_connection
from tcpwin.units import bytes_text, count_text, short_name, time_text

if TYPE_CHECKING:
    # Loading the rules costs more than reading a million packets.
    from tcpwin.limits.findings import Findings

WORST = 3

DAMAGED = "it is damaged"
"""Caveat for a capture that ends at an error in its file."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of a capture.

    Attributes:
        text: a paragraph without line breaks.
        parts: the same as lines: limits with numbers of connections, the worst connection, the fix, the caveat.
        carried: the first sentence: amount of data and duration.
        caveat: the last sentence, about missing parts of the capture; empty if it is complete.
        worst: the three costliest findings, or fewer if fewer cost anything.
        problems: numbers of the connections with a problem, worst first, by the limit that cost each the most.
        verdict: the verdict on the worst connection; None without connections.
        serious: warnings of rules if no connection has a problem; empty without any, or for a single connection.
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
    """Summarize a capture with findings, by default those of all rules with default thresholds."""
    writer = _Writer(analysis, analysis.findings if found is None else found)
    carried = writer.carried()
    caveat = "".join(writer.caveats())
    parts = tuple(filter(None, (" ".join([carried, *writer.limits()]), *writer.first_change(), caveat)))
    return Summary(
        " ".join(parts),
        parts,
        carried,
        caveat,
        tuple(writer.costly[:WORST]),
        writer.problems,
        writer.verdict,
        writer.serious if writer.count != 1 and not writer.ids else "",
    )


class _Writer:
    """The sentences of one summary."""

    def __init__(self, analysis: Analysis, found: Findings) -> None:
        self.analysis = analysis
        self.found = found
        self.count = len(analysis)

    @cached_property
    def ids(self) -> Sequence[int]:
        """Numbers of the connections with a problem, worst first."""
        return problems(self.analysis, self.found)

    @cached_property
    def verdict(self) -> Verdict | None:
        """The verdict on the worst connection."""
        ids = self.ids[:1] or worst(self.analysis, 1, self.found)
        return self._judge(ids[0]) if ids else None

    @cached_property
    def problems(self) -> dict[str, tuple[int, ...]]:
        return problems_by_limit(self.analysis, self.found)

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
            # The time between captures belongs to no connection.
            return f"{connections} in {captures:,} captures, {bytes_text(total)}."
        return f"{'' if self.count == 1 else f'{connections}, '}{bytes_text(total)} in {took}."

    def limits(self) -> Iterable[str]:
        if not self.count or self.verdict is None:
            return
        if self.count == 1:
            yield from sentences_of_one(self.verdict)
            return
        share = f"{MIN_SHARE * 100:.0f} % of the time in which a connection had data to send"
        least = f"A problem costs at least {time_text(MIN_COST_NS)}, and {share}."
        if not self.ids:
            serious = self.serious
            # A refused connection lost no time, but was not a success either.
            yield f"{'No connection lost time' if serious else 'No problem found'}. ({least})"
            if serious:
                yield f"Also found: {serious}."
            return
        names = [LIMIT_NAMES[limit] for limit in self.problems]
        if len(names) > 1:
            names = [f"{LIMIT_NAMES[limit]} ({len(ids):,})" for limit, ids in self.problems.items()]
        by_limit = ", ".join(names)
        yield f"{count_text(len(self.ids), 'connection')} with a problem: {by_limit}. ({least})"
        if shared := _first_texts([each for each in self.warned if each.connection is None]):
            yield f"Also found: {shared}."

    @cached_property
    def serious(self) -> str:
        """The first few warnings of rules that somebody can act on, as text."""
        return _first_texts(self.warned)

    @cached_property
    def warned(self) -> list[Finding]:
        """Warnings of rules that somebody can act on."""
        return [each for each in self.found if each.severity >= Severity.WARNING and each.owner != "nobody"]

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
        """Name the capture that contains a connection, if there are several and the connection's times identify it."""
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
        """Yield a sentence about missing parts of the capture, if any."""
        capture = self.analysis.capture
        lacks = []
        if capture.warnings:
            lacks.append(DAMAGED)
        if capture.interface_drops:
            lacks.append(f"its interface dropped {count_text(capture.interface_drops, 'packet')}")
        if capture.missed_bytes:
            lacks.append(f"it lacks {bytes_text(capture.missed_bytes)} of acknowledged data")
        if capture.connections_sampled:
            lacks.append(f"it has only samples of {count_text(capture.connections_sampled, 'connection')}")
        if capture.connections_one_way:
            lacks.append(f"it has only one side of {count_text(capture.connections_one_way, 'connection')}")
        if capture.connections_without_syn:
            lacks.append(f"it lacks the beginning of {count_text(capture.connections_without_syn, 'connection')}")
        if capture.header_cut + capture.options_cut:
            lacks.append("headers are truncated")
        if capture.packets and capture.first_time_ns is None:
            lacks.append("it has no timestamps")
        if lacks:
            again = " Copy or record it again: the damaged part was not read." if capture.warnings else ""
            yield f"The capture is incomplete: {', '.join(lacks)}.{again}"


def _first_texts(found: Sequence[Finding]) -> str:
    more = [count_text(len(found) - WORST, "more warning")] if len(found) > WORST else []
    return "; ".join([*(each.text.removesuffix(".") for each in found[:WORST]), *more])


def sentences_of_one(verdict: Verdict) -> Iterable[str]:
    """Yield the verdict and cost of the only connection."""
    yield verdict.text
    yield from cost_sentence(verdict)


def advice_label(name: str, verdict: Verdict) -> str:
    """Return ``Cost`` or ``Fix``, with its limit if that is not the headline limit."""
    return name if verdict.beside is None else f"{name} ({verdict.beside})"


def cost_sentence(verdict: Verdict) -> Iterable[str]:
    """Yield the cost of the limit that the fix addresses, unless the verdict's text states it."""
    if verdict.cost_text:
        yield f"{advice_label('Cost', verdict)}: {verdict.cost_text}."
