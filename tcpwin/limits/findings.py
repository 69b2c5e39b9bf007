"""Rules over an analysis: which to ask, which connections to ask about, and what they found, the costliest first."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from tcpwin.analysis import DirectionName
from tcpwin.errors import ArgumentError, TcpwinError
from tcpwin.limits.analysis import Analysis
from tcpwin.limits.case import Case, Picks, Subject
from tcpwin.limits.claims import Claims, narrow_first
from tcpwin.limits.connection import Connection
from tcpwin.limits.finding import Finding, Severity
from tcpwin.limits.prices import excused, price
from tcpwin.limits.reading import reading_of
from tcpwin.limits.roles import main_direction
from tcpwin.limits.rule import Rule, all_rules

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from tcpwin.analysis import Table

Picked = Sequence[Picks]
"""What each question of a rule picks."""

SHARED_SUBJECTS = 10_000
"""Connections and directions whose fields are at hand for all rules."""
KEPT_PER_RULE = 1000
"""Findings of one rule that are kept, the costliest; more are counted."""


@dataclass(frozen=True)
class Findings:
    """What the rules found.

    Attributes:
        found: the costliest first; of each rule at most `KEPT_PER_RULE`.
        counts: how many each rule found, by code; of the rules that found any.
        worst: the highest severity of all; None without findings.
        failed: a sentence for each rule that could not judge to the end; what it and the others found stands.
        known: those of a baseline, which are not among the others, but weigh in verdicts as they do.
    """

    found: tuple[Finding, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    worst: Severity | None = None
    failed: tuple[str, ...] = ()
    known: tuple[Finding, ...] = ()

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    def table(self) -> Table:
        """A row for each: rule, severity, connection, cost, and the frames that prove it, in order.

        ``frames`` is text, as a display filter has them: ``241, 1235``. `Table` becomes a data frame of any kind.
        """
        import numpy as np

        from tcpwin.analysis import Table

        found = self.found
        return Table(
            {
                "rule": _texts([each.code for each in found]),
                "name": _texts([each.name for each in found]),
                "severity": _texts([str(each.severity) for each in found]),
                "connection": _numbers([each.connection for each in found], np.int64),
                "direction": _texts([each.direction for each in found]),
                "cost_ns": _numbers([each.cost_ns for each in found], np.int64),
                "lost_bps": _numbers([each.lost_bps for each in found], np.float64),
                "confidence": _texts([each.confidence for each in found]),
                "owner": _texts([each.owner for each in found]),
                "side": _texts([each.side for each in found]),
                "text": _texts([each.text for each in found]),
                "fix": _texts([None if each.remedy is None else each.remedy.text for each in found]),
                "frames": _texts([", ".join(map(str, each.evidence.frames)) for each in found]),
            }
        )

    def to_polars(self) -> polars.DataFrame:
        """The table as a polars DataFrame; needs the ``tables`` extra."""
        return self.table().to_polars()

    def to_arrow(self) -> pyarrow.Table:
        """The table as Arrow has it; needs the ``arrow`` extra."""
        return self.table().to_arrow()

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a pandas DataFrame; needs the ``pandas`` extra."""
        return self.table().to_pandas()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table for whoever speaks Arrow's C stream: ``polars.DataFrame(analysis.findings)``."""
        return self.table().__arrow_c_stream__(requested_schema)

    def of(self, connection: int) -> tuple[Finding, ...]:
        """Those of one connection, known ones among them."""
        return self._by_connection.get(connection, ())

    @cached_property
    def _by_connection(self) -> dict[int | None, tuple[Finding, ...]]:
        sorted_out: dict[int | None, list[Finding]] = defaultdict(list)
        for each in (*self.found, *self.known):
            sorted_out[each.connection].append(each)
        return {connection: tuple(found) for connection, found in sorted_out.items()}


def choose(select: Iterable[str] = (), ignore: Iterable[str] = ()) -> list[Rule]:
    """The rules whose code begins with, or whose name is, one of `select` (all without), and none of `ignore`.

    Raises:
        ArgumentError: a word of either chooses no rule.
    """
    known = all_rules()
    chosen = {code for word in select for code in _matching(word)} or set(known)
    refused = {code for word in ignore for code in _matching(word)}
    return [rule for code, rule in known.items() if code in chosen - refused]


def _matching(word: str) -> list[str]:
    found = [code for code, rule in all_rules().items() if code.startswith(word.upper()) or rule.name == word.lower()]
    if not found:
        raise ArgumentError(f"no rule begins with {word}: `tcpwin rules` lists them")
    return found


def check(
    analysis: Analysis,
    *,
    chosen: Iterable[Rule] | None = None,
    thresholds: Mapping[str, float] | None = None,
    rereads: bool = True,
) -> Findings:
    """Judge an analysis.

    Args:
        analysis: with snapshots or without.
        chosen: the rules to ask; all without.
        thresholds: values other than the defaults, as ``{"TW201.stall_ns": 1e9}``.
        rereads: rules may read a small capture again; without, what the first reading kept serves, as of a large one.

    Raises:
        ArgumentError: a threshold that no rule has; rules that yield to each other in a circle.
    """
    asked = list(all_rules().values()) if chosen is None else list(chosen)
    wanted = dict(thresholds or {})
    known = {f"{rule.code}.{name}" for rule in all_rules().values() for name in rule.thresholds}
    if unknown := sorted(set(wanted) - known):
        raise ArgumentError(f"no rule has a threshold {unknown[0]}: `tcpwin explain CODE` lists a rule's")
    found: list[Finding] = []
    counts: dict[str, int] = {}
    failed: list[str] = []
    worst = 0
    shared = _Shared(analysis)
    ordered = asked_of(analysis, narrow_first(asked))
    settings = {rule.code: _settings(rule, wanted) for rule in ordered}
    picked = _pick(analysis, ordered, settings)
    looked_at = [rule.code for rule in ordered if rule.scope != "capture" and rule.code in picked]
    reading = reading_of(analysis)
    if not rereads:
        reading.forbid()
    reading.expect(lambda: (id for code in looked_at for chosen in picked[code] for id, _ in chosen))
    for rule in ordered:
        judged: list[Finding] = []
        try:
            for case in _cases(analysis, rule, settings[rule.code], picked, shared):
                judged += rule.judge(case)
        except (TcpwinError, OSError):
            raise
        except Exception as error:  # noqa: BLE001 (a rule may be anybody's; the others still have something to say)
            failed.append(f"rule {rule.code} ({rule.name}) failed: {type(error).__name__}: {error}")
        if judged:
            counts[rule.code] = len(judged)
            if len(judged) > KEPT_PER_RULE:
                worst = max(worst, *(each.severity for each in judged))
            found += heapq.nlargest(KEPT_PER_RULE, judged, key=rank)
    found = _settle(found, analysis, {rule.code: rule.yields_to for rule in ordered})
    worst = max(worst, *(each.severity for each in found), 0)
    # Of the same rank the lower code comes first, in whichever order the rules were asked.
    found.sort(key=lambda finding: finding.code)
    found.sort(key=rank, reverse=True)
    return Findings(
        tuple(found), {code: counts[code] for code in sorted(counts)}, Severity(worst) if worst else None, tuple(failed)
    )


def _settle(found: Sequence[Finding], analysis: Analysis, yields_to: Mapping[str, Sequence[str]]) -> list[Finding]:
    """The findings with the cost that is each one's own, in an order in which narrow rules come first."""
    costly: dict[int, list[int]] = defaultdict(list)
    for place, finding in enumerate(found):
        if finding.connection is not None and finding.cost_ns:
            costly[finding.connection].append(place)
    settled = list(found)
    for id, places in costly.items():
        # One connection after the other, each made anew: budgets of thousands would take up much memory.
        connection = Connection(analysis, id)
        claims = Claims(connection.budget, connection.duration_ns)
        claimed: dict[DirectionName, list[tuple[int, Finding]]] = defaultdict(list)
        for place in places:
            finding = found[place]
            direction = finding.direction or main_direction(connection) or "a_to_b"
            claimed[direction].append((place, claims.settle(finding, direction, yields_to[finding.code])))
        for direction, own in claimed.items():
            priced = price(connection, direction, [finding for _, finding in own])
            for (place, _), finding in zip(own, priced, strict=True):
                settled[place] = excused(found[place], finding)
    return settled


def asked_of(analysis: Analysis, rules: Iterable[Rule]) -> list[Rule]:
    """Those of the rules that are asked of an analysis: without snapshots of a host not those that need one."""
    return [rule for rule in rules if analysis.hosts or not rule.needs_hosts]


def rank(finding: Finding) -> tuple[int, int, float, int]:
    """What findings are put in order by: time lost, then severity, then rate lost, then the earlier connection."""
    number = finding.connection if finding.connection is not None else -1
    return (finding.cost_ns, finding.severity, finding.lost_bps or 0.0, -number)


def _settings(rule: Rule, wanted: Mapping[str, float]) -> dict[str, float]:
    """The rule's thresholds in force."""
    return {name: wanted.get(f"{rule.code}.{name}", each.default) for name, each in rule.thresholds.items()}


def _pick(analysis: Analysis, rules: Iterable[Rule], settings: Mapping[str, Mapping[str, float]]) -> dict[str, Picked]:
    """What each rule's questions pick, by its code, in one walk over the connections.

    Nothing where a rule's own condition is at fault, so that the walk cannot be made.
    """
    try:
        questions = {rule.code: rule.questions(settings[rule.code]) for rule in rules}
        found = iter(analysis.select_all(each for asked in questions.values() for each in asked))
    except (KeyError, ValueError, TypeError):
        return {}
    return {code: list(islice(found, len(asked))) for code, asked in questions.items()}


def _cases(
    analysis: Analysis,
    rule: Rule,
    settings: Mapping[str, float],
    picked: Mapping[str, Picked],
    shared: _Shared,
) -> Iterator[Case]:
    asked = picked.get(rule.code)
    if asked is None:
        asked = analysis.select_all(rule.questions(settings))
    if rule.scope == "capture":
        return iter((Case(analysis, rule, settings, asked=asked),))
    (chosen,) = asked
    if analysis.capture.connections_sampled:
        # What a sampled connection lacks looks like loss, silence and waiting.
        chosen = [(id, name) for id, name in chosen if not shared.connection(id).sampled]
    return Case.each(analysis, rule, settings, map(shared.subject, chosen))


class _Shared:
    """Subjects that several rules look at."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis
        self._connections: dict[int, Connection] = {}
        self._subjects: dict[tuple[int, DirectionName | None], Subject] = {}

    def subject(self, picked: tuple[int, DirectionName | None]) -> Subject:
        found = self._subjects.get(picked)
        if found is not None:
            return found
        if len(self._subjects) >= SHARED_SUBJECTS:
            self._subjects.clear()
            self._connections.clear()
        id, direction = picked
        found = self._subjects[picked] = Subject(self.connection(id), direction)
        return found

    def connection(self, id: int) -> Connection:
        found = self._connections.get(id)
        if found is None:
            found = self._connections[id] = Connection(self._analysis, id)
        return found


def _numbers(values: Sequence[float | None], kind: type[Any]) -> Any:
    import numpy as np

    mask = [value is None for value in values]
    return np.ma.MaskedArray([0 if value is None else value for value in values], mask=mask, dtype=kind)


def _texts(values: Sequence[str | None]) -> Any:
    import numpy as np

    column = np.empty(len(values), dtype=object)
    column[:] = values
    return np.ma.MaskedArray(column, mask=[value is None for value in values])
