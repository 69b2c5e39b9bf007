"""Judge connections: their limits, what those cost, and who can change them.

In: a connection with its time budgets and findings. Out: Verdict. The engine judges; findings, the kernel's counters
and the other end's capture are passed to it as data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tcpwin import _engine
from tcpwin.analysis import DirectionName
from tcpwin.limits.claims import claimed_limit, fault_of
from tcpwin.limits.connection import Connection
from tcpwin.limits.crossing import Crossing
from tcpwin.limits.display import verdict_html
from tcpwin.limits.finding import Evidence, Finding, Severity
from tcpwin.limits.names import FIND_LOSS
from tcpwin.limits.reasons import Seen, reason_of
from tcpwin.limits.roles import main_direction
from tcpwin.limits.statement import Statement
from tcpwin.limits.tables import FAULTS, LIMIT_NAMES, LIMITS, MENDABLE
from tcpwin.units import rest_text, time_text

if TYPE_CHECKING:
    from tcpwin.limits.analysis import Analysis
    from tcpwin.limits.findings import Findings


@dataclass(frozen=True)
class Verdict:
    """The verdict on a connection or direction: facts, and the sentences that follow from them.

    Attributes:
        limit: one of `tcpwin.limits.LIMITS`: the one with the most time in the direction's life.
        second_limit: another limit of similar size; None without one.
        share: the limit's share of the connection's duration, 0 to 1.
        cost_ns: how much sooner the connection would have ended with only this limit lifted; `cost_low_ns` and
            `cost_high_ns` bound it, from 0 if the limit is only possible.
        confidence: one of `tcpwin.limits.CONFIDENCES`.
        owner: who can change it: one of `tcpwin.limits.OWNERS`; nobody if nothing is wrong.
        side: the end where something should change, ``client`` or ``server``; None if it is not an end.
        direction: the limited direction, ``a_to_b`` or ``b_to_a``; None without data.
        lost_ns: time lost to limits that somebody can lift, whatever the largest limit is.
        lost_share: `lost_ns` as a share of the time in which the sender had work, 0 to 1.
        also: the limit that lost the most, if there is a problem and `limit` lost nothing; else None.
        also_ns: cost of `also`.
        is_problem: whether the loss deserves attention: `MIN_COST_NS`, and `MIN_SHARE` or a final stall.
        time_ns: time in the limit that the fix addresses; `cost_ns` is the part that lifting it would have gained.
        total_ns: the connection's duration.
        times_ns: nanoseconds of each limit, in the order of `LIMITS`.
        statement: the inputs of the sentences.
        about: the finding that supplies the fix; None if the time budget alone does.
        reason_finding: the finding that supplies the reason; None if the time budget alone does.
    """

    limit: str
    second_limit: str | None
    share: float
    cost_ns: int
    cost_low_ns: int
    cost_high_ns: int
    confidence: str
    owner: str
    side: str | None
    direction: DirectionName | None
    lost_ns: int
    lost_share: float
    also: str | None
    also_ns: int
    is_problem: bool
    time_ns: int
    total_ns: int
    times_ns: tuple[int, ...]
    statement: Statement
    about: Finding | None
    reason_finding: Finding | None
    _seen: Seen = field(repr=False, compare=False)
    _crossing: Crossing | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        return f"<Verdict: {self.text}>"

    def _repr_html_(self) -> str:
        return verdict_html(self)

    @property
    def headline(self) -> str:
        """The first sentence: limit, share and confidence."""
        return self.statement.headline

    @property
    def named(self) -> str:
        """The limit with share and confidence, as in `headline`."""
        return self.statement.named

    @property
    def answer(self) -> str:
        """The text without the sentence about `also`."""
        return self.statement.answer

    @property
    def beside_text(self) -> str:
        """A sentence about `also` with its cost; empty without one, or if `answer` names it."""
        return self.statement.beside_text

    @cached_property
    def text(self) -> str:
        """The whole answer on one line."""
        return self.statement.text

    @property
    def limited_by(self) -> str:
        """`named`, for use within a sentence."""
        return f"{self.named[:1].lower()}{self.named[1:]}" if self.statement.is_unnamed else f"limited by {self.named}"

    @property
    def beside(self) -> str | None:
        """The label of the limit that cost and fix refer to, if it is not the headline limit."""
        return None if self.also is None else LIMIT_NAMES[self.also]

    @property
    def named_ns(self) -> int:
        """Cost of the limit that the fix addresses: `limit` or `also`."""
        if self.also is not None:
            return self.also_ns
        return self.cost_ns if self.limit in MENDABLE else self.lost_ns

    @cached_property
    def fix(self) -> str | None:
        """The recommended change; None if there is nothing to change."""
        statement = self.statement
        own = statement.fix_text
        if self.about is not None and self.about.remedy is not None:
            own = self.about.remedy.text
        if statement.fix != "of_crossing" or self._crossing is None:
            return own
        limit = statement.also or statement.limit
        return self._crossing.fix(statement.fix_witness, limit, own or FIND_LOSS, statement.sender, statement.receiver)

    @cached_property
    def reason(self) -> str:
        """The reason for the limit, with numbers."""
        statement, seen = self.statement, self._seen
        if statement.is_empty:
            return "it ended with its first packet"
        reason = self.reason_finding.text if self.reason_finding is not None else reason_of(seen, statement.limit)
        if self._crossing is not None:
            reason = self._crossing.reason(statement.witness, reason, statement.receiver)
        if seen.is_doubled and statement.limit != "capture":
            reason += "; but the capture seems to hold each packet twice, and the copies look like losses"
        if statement.limit == "sender_application" and seen.connection.multipath:
            reason += "; but other subflows of Multipath TCP may have carried the data"
        return reason

    @cached_property
    def cost_text(self) -> str:
        """Cost of the limit that the fix addresses, and the duration.

        Empty if `beside_text` states it, or there is no problem.
        """
        if not self.is_problem or self.beside_text or self.statement.standing == "reported":
            return ""
        if not self.named_ns and not self.cost_high_ns:
            return ""
        total = time_text(self.total_ns)
        if self.also is not None or self.limit not in MENDABLE:
            return f"about {time_text(self.also_ns or self.lost_ns)} of {total}"
        likely, low, high = map(time_text, (self.cost_ns, self.cost_low_ns, self.cost_high_ns))
        about, rest = f"about {likely}", rest_text(self.total_ns, self.cost_ns)
        if low != likely != high and self.cost_low_ns:
            about += f" ({low} to {high})"
        elif high != likely:
            about += f" (at most {high})"
        elif not self.cost_low_ns:
            about, rest = f"up to {likely}", f"as little as {rest}"
        elif low != likely:
            about += f" (at least {low})"
        if self.cost_ns >= self.total_ns:
            return f"{about}, all of {total}"
        which = "this limit" if self.second_limit is None else "the first limit"
        return f"{about}: without {which} it would have taken {rest} instead of {total}"

    @property
    def code(self) -> str | None:
        """Code of the finding that supplies the fix."""
        return None if self.about is None else self.about.code

    @property
    def rule(self) -> str | None:
        """Name of that finding's rule."""
        return None if self.about is None else self.about.name

    @property
    def frames(self) -> tuple[int, ...]:
        """Numbers of frames that show the limit; `frames_of` says which occurrences."""
        return () if self.about is None else self.about.evidence.frames

    @property
    def frames_of(self) -> str:
        """Which occurrences `frames` show; empty if all."""
        return "" if self.about is None else self.about.evidence.frames_of or ""

    @property
    def when_text(self) -> str:
        """When it happened, relative to the connection's start; empty if no finding shows it."""
        if self.about is None:
            return ""
        spent_ns = self.also_ns or self.times_ns[LIMITS.index(self.limit)]
        return _when_text(self.about.evidence, self._seen.connection.start_ns, spent_ns)


class Verdicts:
    """Verdicts on the connections that findings are about, each judged once.

    Args:
        found: all findings of the analysis.
    """

    def __init__(self, analysis: Analysis, found: Findings) -> None:
        self._analysis = analysis
        self._found = found
        self._verdicts: dict[int, Verdict] = {}

    def of(self, finding: Finding) -> Verdict | None:
        """Return the verdict on a finding's connection; None for a finding of the capture."""
        id = finding.connection
        if id is None:
            return None
        if id not in self._verdicts:
            self._verdicts[id] = judge_connection(self._analysis.connections[id], self._found.of(id))
        return self._verdicts[id]


def judge_connection(connection: Connection, findings: Sequence[Finding] = ()) -> Verdict:
    """Judge a connection by the direction that lost more, else by the one with more data."""
    return choose_direction(connection, judge_directions(connection, findings))


def judge_directions(
    connection: Connection, findings: Sequence[Finding] = (), crossings: Mapping[DirectionName, Crossing] | None = None
) -> dict[DirectionName, Verdict]:
    """Judge both directions; without findings, from the time budgets alone, which is cheap.

    Args:
        crossings: evidence from the other end's capture, by direction.
    """
    found: dict[DirectionName, list[Finding]] = {"a_to_b": [], "b_to_a": []}
    for each in findings:
        # Assign findings about both directions to the one with more data.
        found[each.direction or main_direction(connection) or "a_to_b"].append(each)
    both = crossings or {}
    return {name: _judge(connection, name, own, both.get(name)) for name, own in found.items()}


def choose_direction(connection: Connection, verdicts: Mapping[DirectionName, Verdict]) -> Verdict:
    """Choose the connection's verdict from those of its directions."""
    there, back = verdicts["a_to_b"], verdicts["b_to_a"]
    faulty = [each for each in (there, back) if each.is_problem and each.limit in FAULTS]
    if len(faulty) == 1:
        return faulty[0]
    is_back_main = main_direction(connection) == "b_to_a"
    losses = [(each.lost_ns, each.is_problem) for each in (there, back)]
    return back if _engine.is_worse(losses[0], losses[1], is_back_main) else there


def _judge(
    connection: Connection, name: DirectionName, findings: Sequence[Finding], crossing: Crossing | None
) -> Verdict:
    budget = connection.budget[name]
    if crossing is not None:
        budget = crossing.corrected(budget)
    analysis, kernel = connection._analysis, budget.kernel
    facts: dict[str, Any] = _engine.judge(
        analysis._engine,
        connection.id,
        name == "b_to_a",
        list(budget.items_ns.values()),
        list(budget.packets_ns.values()),
        kernel_ns=None if kernel is None else (kernel.rwnd_limited_ns, kernel.sndbuf_limited_ns),
        findings=[
            (
                each.owner,
                each.side,
                each.confidence,
                each.severity >= Severity.WARNING,
                each.cost_ns,
                each.remedy is not None,
                each.severity == Severity.ERROR,
                fault_of(each),
            )
            for each in findings
        ],
        claims=[
            (place, item, claimed_limit(each, item), ns)
            for place, each in enumerate(findings)
            for item, ns in each.items_ns.items()
        ],
        crossing=crossing,
        is_capture_lossy=bool(analysis.capture.interface_drops),
    )
    reason_by, fix_by = facts.pop("reason_finding"), facts.pop("fix_finding")
    how = facts.pop("reason")
    facts["times_ns"] = tuple(facts["times_ns"])
    seen = Seen(connection.detached(), name, budget, how, facts.pop("is_answering"), facts.pop("is_doubled"))
    statement, has_data = Statement(*facts.pop("statement")), facts.pop("has_data")
    limited: DirectionName = "b_to_a" if facts.pop("is_back_limited") else "a_to_b"
    return Verdict(
        **facts,
        statement=statement,
        direction=limited if has_data else None,
        about=None if fix_by is None else findings[fix_by],
        reason_finding=findings[reason_by] if how == "finding" else None,
        _seen=seen,
        _crossing=crossing,
    )


def _when_text(evidence: Evidence, connection_ns: int, spent_ns: int) -> str:
    """Return ``from 1.9 s to 6.04 s of the connection``; empty if the times cover one occurrence of many.

    ``mostly`` is added if the limit's total time is longer: some of it lies outside the finding's span.
    """
    if evidence.start_ns is None or evidence.span_of:
        return ""
    start, end = (
        time_text(max(ns - connection_ns, 0)) for ns in (evidence.start_ns, evidence.end_ns or evidence.start_ns)
    )
    if start == end:
        return f"at {start} of the connection"
    mostly = "mostly " if (evidence.end_ns or evidence.start_ns) - evidence.start_ns < spent_ns else ""
    return f"{mostly}from {start} to {end} of the connection"
