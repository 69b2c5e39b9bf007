"""Run rules over an analysis: choose the rules, select connections for them, and collect findings, costliest first."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar, overload

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
from tcpwin.limits.rule import Outline, Rule, all_outlines, all_rules
from tcpwin.limits.unreported import CODE as UNREPORTED
from tcpwin.limits.unreported import unreported

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from tcpwin.analysis import Table

Described = TypeVar("Described", Rule, Outline)
Picked = Sequence[Picks]
"""The selection for each question of a rule."""

SHARED_SUBJECTS = 10_000
"""Maximum number of connections and directions cached for all rules."""
KEPT_PER_RULE = 1000
"""Maximum number of findings kept per rule, costliest first; the rest are only counted."""


@dataclass(frozen=True)
class Findings:
    """The findings of all rules.

    Attributes:
        found: findings, costliest first; at most `KEPT_PER_RULE` per rule.
        counts: number of findings by rule code, for rules that found any.
        worst: the highest severity; None without findings.
        failed: a sentence for each rule that failed; its findings until then are kept.
        known: findings of a baseline, which are not in `found` but count in verdicts.
        aside: the same for findings of rules that were not chosen.
        aside_count: number of those, including the ones beyond `KEPT_PER_RULE`.
    """

    found: tuple[Finding, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    worst: Severity | None = None
    failed: tuple[str, ...] = ()
    known: tuple[Finding, ...] = ()
    aside: tuple[Finding, ...] = ()
    aside_count: int = 0

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    @overload
    def __getitem__(self, index: int) -> Finding: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Finding, ...]: ...
    def __getitem__(self, index: int | slice) -> Finding | tuple[Finding, ...]:
        return self.found[index]

    def table(self) -> Table:
        """Return a row for each finding, in order, with its rule's code, severity, connection, cost and frames.

        ``frames`` is text for a display filter: ``241, 1235``. `Table` converts to any kind of data frame.
        """
        import numpy as np

        from tcpwin.analysis import Table

        found = self.found
        return Table(
            {
                "code": _texts([each.code for each in found]),
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

    def to_polars(self, *, times: bool = False) -> polars.DataFrame:
        """Return the table as a polars DataFrame; needs the ``tables`` extra. `times` is as for `Table.to_polars`."""
        return self.table().to_polars(times=times)

    def to_arrow(self, *, times: bool = False) -> pyarrow.Table:
        """Return the table as an Arrow table; needs the ``arrow`` extra. `times` is as for `Table.to_polars`."""
        return self.table().to_arrow(times=times)

    def to_pandas(self, *, times: bool = False) -> pandas.DataFrame:
        """Return the table as a pandas DataFrame; needs the ``pandas`` extra. `times` is as for `Table.to_polars`."""
        return self.table().to_pandas(times=times)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the table as an Arrow C stream, such as for ``polars.DataFrame(analysis.findings)``."""
        return self.table().__arrow_c_stream__(requested_schema)

    def of(self, connection: int) -> tuple[Finding, ...]:
        """Return the findings of one connection, including those that count in its verdict only."""
        return self._by_connection.get(connection, ())

    @cached_property
    def _by_connection(self) -> dict[int | None, tuple[Finding, ...]]:
        by_connection: dict[int | None, list[Finding]] = defaultdict(list)
        for each in (*self.found, *self.known, *self.aside):
            by_connection[each.connection].append(each)
        return {connection: tuple(found) for connection, found in by_connection.items()}


def choose(select: Iterable[str] = (), ignore: Iterable[str] = ()) -> list[Rule]:
    """Return the rules that match `select` (by default all) and not `ignore`, by code prefix or name.

    Raises:
        ArgumentError: a word matches no rule.
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
    aside: Iterable[Rule] = (),
    thresholds: Mapping[str, float] | None = None,
    rereads: bool = True,
) -> Findings:
    """Run rules over an analysis.

    Args:
        analysis: the analysis, with or without snapshots.
        chosen: the rules to run; by default all.
        aside: rules to run whose findings only count in verdicts (`Findings.aside`).
        thresholds: values that differ from the defaults, such as ``{"TW201.stall_ns": 1e9}``.
        rereads: whether rules may read a small capture again. If not, they use what the first reading kept, as for a
            large capture.

    Raises:
        ArgumentError: a threshold does not exist.
        ValueError: rules yield to each other in a cycle.
    """
    outlines = all_outlines() if chosen is None else [rule.outline for rule in chosen]
    others = [rule.outline for rule in aside]
    unshown = {each.code for each in others}
    outlines = [*outlines, *others]
    wanted = dict(thresholds or {})
    known = {f"{each.code}.{name}" for each in all_outlines() for name in each.defaults}
    if unknown := sorted(set(wanted) - known):
        raise ArgumentError(f"no rule has a threshold {unknown[0]}: `tcpwin explain CODE` lists a rule's")
    found: list[Finding] = []
    counts: dict[str, int] = {}
    failed: list[str] = []
    worst = 0
    shared = _Shared(analysis)
    ordered = applicable_rules(analysis, narrow_first(outlines))
    settings = {each.code: _settings(each, wanted) for each in ordered}
    picked = _pick(analysis, ordered, settings)
    scoped = [each.code for each in ordered if each.scope != "capture" and each.code in picked]
    reading = reading_of(analysis)
    if not rereads:
        reading.forbid()
    reading.expect(lambda: (id for code in scoped for chosen in picked[code] for id, _ in chosen))
    for outline in ordered:
        if outline.code == UNREPORTED or not _may_apply(outline, analysis, picked):
            continue
        rule = outline.rule
        judged: list[Finding] = []
        try:
            for case in _cases(analysis, rule, settings[rule.code], picked, shared):
                judged += rule.judge(case)
        except (TcpwinError, OSError):
            raise
        except Exception as error:  # noqa: BLE001 (a third-party rule must not stop the others)
            if rule.code not in unshown:
                failed.append(f"rule {rule.code} ({rule.name}) failed: {type(error).__name__}: {error}")
        if judged:
            counts[rule.code] = len(judged)
            if len(judged) > KEPT_PER_RULE and rule.code not in unshown:
                worst = max(worst, *(each.severity for each in judged))
            found += heapq.nlargest(KEPT_PER_RULE, judged, key=rank)
    found = _settle(found, analysis, {each.code: each.yields_to for each in ordered})
    if any(each.code == UNREPORTED for each in ordered):
        added = list(unreported(analysis, _by_connection(found), KEPT_PER_RULE))
        counts |= {UNREPORTED: len(added)} if added else {}
        found += added
    # At equal rank the lower code comes first, whatever the order of the rules.
    found.sort(key=lambda finding: finding.code)
    found.sort(key=rank, reverse=True)
    shown = tuple(each for each in found if each.code not in unshown)
    worst = max(worst, *(each.severity for each in shown), 0)
    return Findings(
        shown,
        {code: counts[code] for code in sorted(counts) if code not in unshown},
        Severity(worst) if worst else None,
        tuple(failed),
        aside=tuple(each for each in found if each.code in unshown),
        aside_count=sum(counts[code] for code in counts if code in unshown),
    )


def _by_connection(found: Iterable[Finding]) -> dict[int, list[Finding]]:
    by_connection: dict[int, list[Finding]] = defaultdict(list)
    for each in found:
        if each.connection is not None:
            by_connection[each.connection].append(each)
    return by_connection


def _settle(found: Sequence[Finding], analysis: Analysis, yields_to: Mapping[str, Sequence[str]]) -> list[Finding]:
    """Assign each finding its own cost; findings are ordered with specific rules first."""
    costly: dict[int, list[int]] = defaultdict(list)
    for place, finding in enumerate(found):
        if finding.connection is not None and finding.cost_ns:
            costly[finding.connection].append(place)
    settled = list(found)
    for id, places in costly.items():
        # Create each connection here and drop it: the budgets of thousands would use much memory.
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


def applicable_rules(analysis: Analysis, rules: Iterable[Described]) -> list[Described]:
    """Return the rules that apply to an analysis; those that need host snapshots do not apply without them."""
    return [rule for rule in rules if analysis.hosts or not rule.needs_hosts]


def rank(finding: Finding) -> tuple[int, int, float, int]:
    """Return the sort key of a finding: time lost, then severity, then rate lost, then the earlier connection."""
    number = finding.connection if finding.connection is not None else -1
    return (finding.cost_ns, finding.severity, finding.lost_bps or 0.0, -number)


def _settings(outline: Outline, wanted: Mapping[str, float]) -> dict[str, float]:
    """Return the rule's thresholds in effect."""
    return {name: wanted.get(f"{outline.code}.{name}", default) for name, default in outline.defaults.items()}


def _pick(
    analysis: Analysis, outlines: Iterable[Outline], settings: Mapping[str, Mapping[str, float]]
) -> dict[str, Picked]:
    """Select the subjects of all rules, by code, in one walk over the connections.

    Returns nothing if the condition of any rule is invalid, which prevents the walk.
    """
    try:
        questions = {each.code: each.questions(settings[each.code]) for each in outlines}
        found = iter(analysis.select_all(each for own in questions.values() for each in own))
    except (KeyError, ValueError, TypeError):
        return {}
    return {code: list(islice(found, len(own))) for code, own in questions.items()}


def _may_apply(outline: Outline, analysis: Analysis, picked: Mapping[str, Picked]) -> bool:
    """Return whether a rule has anything to judge; True if its selections could not be made."""
    selections = picked.get(outline.code)
    if selections is None or (outline.scope == "capture" and not outline.asks and not outline.counts):
        return True
    return any(map(len, selections)) or any(getattr(analysis.capture, name) for name in outline.counts)


def _cases(
    analysis: Analysis,
    rule: Rule,
    settings: Mapping[str, float],
    picked: Mapping[str, Picked],
    shared: _Shared,
) -> Iterator[Case]:
    selections = picked.get(rule.code)
    if selections is None:
        selections = analysis.select_all(rule.outline.questions(settings))
    if rule.scope == "capture":
        return iter((Case(analysis, rule, settings, asked=selections),))
    (chosen,) = selections
    if analysis.capture.connections_sampled:
        # The gaps of a sampled connection look like loss, silence and waiting.
        chosen = [(id, name) for id, name in chosen if not shared.connection(id).sampled]
    return Case.each(analysis, rule, settings, map(shared.subject, chosen))


class _Shared:
    """Cache of the subjects that several rules judge."""

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
