"""A finding as every output shows it: place, cost, evidence and fix as text with units.

In: findings, and the analysis that they are of. Out: FindingView, which has every field of a finding.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tcpwin.analysis import DirectionName
from tcpwin.limits import (
    LIMIT_NAMES,
    Analysis,
    Connection,
    Evidence,
    Finding,
    Findings,
    Remedy,
    Severity,
    Verdict,
    Verdicts,
    all_rules,
    cost_confidence,
    is_part_of,
    plain,
    roles_of,
    way_of,
)
from tcpwin.render.view.verdict import frames_filter, owner_text
from tcpwin.units import begin, bytes_text, count_text, name_text, rate_text, share_text, time_text

_OPEN = "Not ruled out: "
"""Prefix of a rule's text if another explanation remains possible."""
_NEGATION = re.compile(r"(^|[.;] )Not (?!ruled out)(\w)")
_UNITS: tuple[tuple[str, Callable[[Any], str]], ...] = (
    ("_ns", time_text),
    ("_bytes", bytes_text),
    ("_bps", rate_text),
)
_NAMES = {"mathis_bps": "most that Reno reaches at this loss (Mathis)"}
"""Labels of values whose field names do not explain them."""


@dataclass(frozen=True, slots=True)
class FindingView:
    """A finding in words; a text is empty if there is nothing to show.

    Attributes:
        direction: ``client → server``.
        ends: both ends of the connection, with their roles.
        lost: the time lost; `whole` says of how much, if the verdict counts more: ``of the 28.1 s lost in all (slow
            reader)``.
        rate: the rate lost.
        confidence: confidence of the cost, or of the finding if it has none.
        weight: cost and confidence as parts of a sentence: ``time lost 6.1 s``, ``certain``.
        owner: who can change it: ``the client's application``.
        when: seconds since the capture's first packet.
        values: name and value, in words.
        remedy_label: ``Fix``, or ``Next capture`` if the capture is what has to change.
        ruling: ``Ruled out`` or ``Not ruled out``, which applies to `ruled_out`, the likeliest other explanation.
        filter: a Wireshark display filter of the frames.
    """

    code: str
    name: str
    severity: str
    connection: int | None
    direction: str
    ends: str
    text: str
    lost: str
    whole: str
    rate: str
    confidence: str
    weight: Sequence[str]
    owner: str
    when: str
    values: Sequence[tuple[str, str]]
    ruling: str
    ruled_out: str
    remedy_label: str
    remedy: Remedy | None
    frames: Sequence[int]
    frames_of: str
    filter: str

    @property
    def title(self) -> str:
        """Code and name of the rule."""
        return f"{self.code} {self.name}"

    @property
    def place(self) -> str:
        """``connection 3 client → server``, or ``the capture``."""
        return "the capture" if self.connection is None else f"connection {self.connection} {self.direction}".rstrip()

    @property
    def cost(self) -> str:
        """The time lost, and of what total."""
        return f"{self.lost} {self.whole}".rstrip()


class FindingViews:
    """Views of an analysis's findings, each weighed by the verdict on its connection."""

    def __init__(self, analysis: Analysis, found: Findings) -> None:
        self._analysis = analysis
        self.verdict = Verdicts(analysis, found).of

    def __call__(self, finding: Finding) -> FindingView:
        """Describe a finding in words."""
        return view_finding(self._analysis, finding, self.verdict(finding))


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """Findings of one rule that the same owner can fix, the costliest first."""

    findings: Sequence[Finding]

    @property
    def worst(self) -> Finding:
        """The costliest finding."""
        return self.findings[0]

    @property
    def title(self) -> str:
        """Title of the rule."""
        return all_rules()[self.worst.code].title

    @property
    def count(self) -> int:
        """The number of findings."""
        return len(self.findings)

    @property
    def connections(self) -> int:
        """The number of connections with these findings."""
        return len({each.connection for each in self.findings})

    @property
    def cost_ns(self) -> int:
        """The sum of their costs."""
        return sum(each.cost_ns or 0 for each in self.findings)

    @property
    def total(self) -> str:
        """The same as text; empty without a cost."""
        return time_text(self.cost_ns) if self.cost_ns else ""


def group_findings(findings: Iterable[Finding]) -> list[FindingGroup]:
    """Group findings by rule and owner, the costliest group first; groups without a cost keep the findings' order."""
    kinds: dict[tuple[str, str], list[Finding]] = {}
    for each in findings:
        kinds.setdefault((each.code, each.owner), []).append(each)
    return sorted(map(FindingGroup, kinds.values()), key=lambda group: -group.cost_ns)


def view_finding(analysis: Analysis, finding: Finding, verdict: Verdict | None) -> FindingView:
    """Describe a finding in words, weighed by the verdict on its connection."""
    evidence, remedy = finding.evidence, finding.remedy
    whole, sure = "", cost_confidence(finding, verdict) or finding.confidence
    if finding.cost_ns and verdict is not None and is_part_of(finding, verdict):
        whole = f"of the {time_text(verdict.named_ns)} lost in all ({LIMIT_NAMES[verdict.also or verdict.limit]})"
    ends = direction = ""
    roles: Mapping[str, str] = {}
    if finding.connection is not None:
        connection = analysis.connections[finding.connection]
        roles = roles_of(connection)
        client, server = roles.values()
        ends = f"{client} {connection.a}, {server} {connection.b}"
        direction = way_of(connection, finding.direction) if finding.direction else ""
    ruling, ruled_out = _ruled_out(evidence.ruled_out or "")
    lost = time_text(finding.cost_ns) if finding.cost_ns else ""
    rate = rate_text(finding.lost_bps) if finding.lost_bps else ""
    weight = (f"{lost} {whole}" if whole else lost and f"time lost {lost}", rate and f"rate lost {rate}", sure)
    return FindingView(
        code=finding.code,
        name=finding.name,
        severity=str(finding.severity),
        connection=finding.connection,
        direction=direction,
        ends=ends,
        text=name_text(finding.text),
        lost=lost,
        whole=whole,
        rate=rate,
        confidence=sure,
        weight=[each for each in weight if each],
        owner=owner_text(finding.owner),
        when=_span_text(analysis, evidence),
        values=[_named(name, roles.get(str(value), value)) for name, value in evidence.values.items()],
        ruling=ruling,
        ruled_out=begin(name_text(ruled_out)),
        remedy_label="Next capture" if evidence.values.get("weakens") else "Fix",
        remedy=remedy
        and Remedy(
            name_text(remedy.text),
            tuple(name_text(line) for line in remedy.settings),
            name_text(remedy.side_effects or "") or None,
        ),
        frames=evidence.frames,
        frames_of=name_text(evidence.frames_of or ""),
        filter=frames_filter(evidence.frames),
    )


def arrow_of(connection: Connection, direction: DirectionName) -> str:
    """Return a direction as one word: ``server→client``."""
    return way_of(connection, direction).replace(" ", "")


def counts_line(analysis: Analysis, found: Findings, *, checked: int) -> str:
    """Count the findings by severity, and the connections that have one; `checked` is the number of rules applied."""
    scope = f"{count_text(checked, 'rule')} checked on {count_text(len(analysis), 'connection')}"
    total = sum(found.counts.values())
    aside = f"; {count_text(len(found.known), 'known finding')} not shown" if found.known else ""
    if found.aside_count:
        aside += f"; {count_text(found.aside_count, 'finding')} of other rules not shown"
    if not total:
        return f"No {'new ' if found.known else ''}findings{aside}; {scope}."
    by_severity = Counter(finding.severity for finding in found)
    counts = [
        count_text(by_severity[severity], str(severity), "info" if severity is Severity.INFO else None)
        for severity in sorted(Severity, reverse=True)
        if by_severity[severity]
    ]
    hit = len({finding.connection for finding in found} - {None})
    places = f" in {count_text(hit, 'connection')}" if hit and len(analysis) > 1 else ""
    cut = "" if total == len(found) else f" among the {len(found):,} costliest"
    return f"{count_text(total, 'finding')} ({', '.join(counts)}{cut}){places}{aside}; {scope}."


def frames_text(frames: Sequence[int]) -> str:
    """Return ``frame 5`` or ``frames 5, 9``."""
    return f"{'frame' if len(frames) == 1 else 'frames'} {', '.join(map(str, frames))}"


def value_words(name: str, value: float | int | str) -> tuple[str, str]:
    """Return a value's name, and the value with its unit: ``window_bytes`` of 65535 is ``window``, ``65.5 kB``."""
    number: Any = plain(value)
    ending, text = next((each for each in _UNITS if name.endswith(each[0]) and name != each[0]), ("", None))
    words = _NAMES.get(name) or name.removesuffix(ending).replace("_", " ")
    if not isinstance(number, int | float):
        return words, "unknown" if number is None else str(number)
    if text is not None:
        return words, f"{'-' if number < 0 else ''}{text(abs(number))}"
    if name == "share" or name.endswith("_share"):
        return words, share_text(number, places=1)
    if isinstance(number, int) or abs(number) >= 1e15:
        return words, f"{number:,}"
    return words, f"{number:,.3f}".rstrip("0").rstrip(".")


def _named(name: str, value: float | int | str) -> tuple[str, str]:
    words, text = value_words(name, value)
    return name_text(words), name_text(text)


def _span_text(analysis: Analysis, evidence: Evidence) -> str:
    """Return the time span in seconds since the capture's first packet, as Wireshark shows time."""
    first_ns = analysis.capture.first_time_ns
    if evidence.start_ns is None or first_ns is None:
        return ""
    of = f" ({evidence.span_of})" if evidence.span_of else ""
    start = f"{(evidence.start_ns - first_ns) / 1e9:.6f}"
    if evidence.end_ns is None or evidence.end_ns == evidence.start_ns:
        return f"at {start} s of the capture{of}"
    return f"from {start} to {(evidence.end_ns - first_ns) / 1e9:.6f} s of the capture{of}"


def _ruled_out(text: str) -> tuple[str, str]:
    """Return a label and the other explanations; below ``Ruled out`` they lose their ``Not``."""
    if text.startswith(_OPEN):
        return "Not ruled out", text.removeprefix(_OPEN)
    return "Ruled out", _NEGATION.sub(lambda found: f"{found[1]}{found[2].upper()}", text)
