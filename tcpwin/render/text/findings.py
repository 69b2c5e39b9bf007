"""Findings as text, in the manner of a linter: a line for each with its cost, then its evidence and its remedy.

In: an analysis and what the rules found. Out: lines. It leaves out nothing of a finding, and judges nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from tcpwin.analysis import DirectionName
from tcpwin.limits import (
    CONFIDENCES,
    LIMIT_NAMES,
    Analysis,
    Connection,
    Evidence,
    Finding,
    Findings,
    Severity,
    Verdict,
    is_about,
    is_part_of,
    judge_connection,
    plain,
    roles_of,
    way_of,
)
from tcpwin.units import begin, bytes_text, count_text, name_text, rate_text, share_text, time_text

_OPEN = "Not ruled out: "
"""So begins what a rule says of another explanation that stays possible."""
_NEGATION = re.compile(r"(^|[.;] )Not (?!ruled out)(\w)")
_UNITS: tuple[tuple[str, Callable[[Any], str]], ...] = (
    ("_ns", time_text),
    ("_bytes", bytes_text),
    ("_bps", rate_text),
)
_NAMES = {"mathis_bps": "most that Reno reaches at this loss (Mathis)"}
"""Names of values that their machine names do not say."""


@dataclass(frozen=True, slots=True)
class Weight:
    """How much a finding weighs, in words: the same wherever it is told.

    Attributes:
        lost: the time lost; empty without any, as `rate`, what was lost of the rate.
        whole: of how much more by the connection's verdict: `` of the 28.1 s lost in all (slow reader)``; empty where
            it is all, or the verdict is about something else.
        confidence: of the cost: that of the verdict where it is less sure than what was seen.
    """

    lost: str
    whole: str
    rate: str
    confidence: str


def render_findings(analysis: Analysis, found: Findings, *, asked: int, limit: int | None = None) -> Iterator[str]:
    """Lines of a report: the `limit` costliest findings (all with None), and what was counted.

    Args:
        asked: how many rules were asked.
    """
    verdict_on = verdicts_on(analysis, found)
    for finding in islice(found, limit):
        yield heading(analysis, finding, verdict_on(finding))
        yield from (f"    {line}" for line in details(analysis, finding))
        yield ""
    yield counts_line(analysis, found, asked=asked)
    left = sum(found.counts.values()) - min(len(found), len(found) if limit is None else limit)
    if left:
        yield f"{count_text(left, 'finding')} not shown: --limit N shows more, --select CODE those of one rule."


def verdicts_on(analysis: Analysis, found: Findings) -> Callable[[Finding], Verdict | None]:
    """What tells the verdict on a finding's connection, by all that was found there; None of the whole capture's."""
    known: dict[int, Verdict] = {}

    def verdict_on(finding: Finding) -> Verdict | None:
        id = finding.connection
        if id is None:
            return None
        if id not in known:
            known[id] = judge_connection(analysis.connections[id], found.of(id))
        return known[id]

    return verdict_on


def heading(analysis: Analysis, finding: Finding, verdict: Verdict | None) -> str:
    """``capture:#3 server→client TW201 zero-window-stall (warning, time lost 6.1 s, certain): text``."""
    said = ", ".join([str(finding.severity), *weight_words(finding, verdict)])
    return name_text(f"{place(analysis, finding)} {title(finding)} ({said}): {finding.text}")


def place(analysis: Analysis, finding: Finding) -> str:
    """The capture, with the connection's number and the direction where the finding has them."""
    where = analysis.name if finding.connection is None else f"{analysis.name}:#{finding.connection}"
    if finding.connection is None or finding.direction is None:
        return where
    return f"{where} {arrow_of(analysis.connections[finding.connection], finding.direction)}"


def arrow_of(connection: Connection, direction: DirectionName) -> str:
    """A direction as one word: ``server→client``."""
    return way_of(connection, direction).replace(" ", "")


def title(finding: Finding) -> str:
    """Code and name."""
    return f"{finding.code} {finding.name}"


def weigh(finding: Finding, verdict: Verdict | None) -> Weight:
    """What was lost, of how much by its connection's verdict, and how sure that is."""
    whole, sure = "", finding.confidence
    if verdict is not None and is_about(finding, verdict):
        # What was seen may be surer than that it was the limit, which a cost says.
        sure = min(sure, verdict.confidence, key=CONFIDENCES.index)
    if finding.cost_ns and verdict is not None and is_part_of(finding, verdict):
        whole = f" of the {time_text(verdict.named_ns)} lost in all ({LIMIT_NAMES[verdict.also or verdict.limit]})"
    return Weight(
        time_text(finding.cost_ns) if finding.cost_ns else "",
        whole,
        rate_text(finding.lost_bps) if finding.lost_bps else "",
        sure,
    )


def weight_words(finding: Finding, verdict: Verdict | None) -> list[str]:
    """The same as parts of a sentence: ``time lost 6.1 s``, ``certain``."""
    weight = weigh(finding, verdict)
    said = []
    if weight.lost:
        said.append(f"{weight.lost}{weight.whole}" if weight.whole else f"time lost {weight.lost}")
    if weight.rate:
        said.append(f"rate lost {weight.rate}")
    return [*said, weight.confidence]


def details(analysis: Analysis, finding: Finding) -> Iterator[str]:
    """Ends, blame, evidence and remedy, a line each."""
    if finding.connection is not None:
        connection = analysis.connections[finding.connection]
        client, server = roles_of(connection).values()
        yield _line("ends", f"{client} {connection.a}, {server} {connection.b}")
    yield _line("owner", owner_text(finding.owner))
    yield from (_line(name, text) for name, text in _evidence(analysis, finding.evidence))
    if finding.remedy is not None:
        yield _line("remedy", finding.remedy.text)
        yield from (_line("", setting) for setting in finding.remedy.settings)
        if finding.remedy.side_effects:
            yield _line("beware", finding.remedy.side_effects)


def owner_text(owner: str) -> str:
    """Who can change it, in words: ``the client's application``, ``the network``."""
    end, _, what = owner.rpartition("_")
    return f"the {end}'s {what}" if end else owner if owner == "nobody" else f"the {what}"


def counts_line(analysis: Analysis, found: Findings, *, asked: int) -> str:
    """How many findings there are, of which severity, in how many connections."""
    checked = f"{count_text(asked, 'rule')} checked on {count_text(len(analysis), 'connection')}"
    total = sum(found.counts.values())
    aside = f"; {count_text(len(found.known), 'known finding')} not shown" if found.known else ""
    if not total:
        return f"No {'new ' if found.known else ''}findings{aside}; {checked}."
    by_severity = Counter(finding.severity for finding in found)
    counts = [
        count_text(by_severity[severity], str(severity), "info" if severity is Severity.INFO else None)
        for severity in sorted(Severity, reverse=True)
        if by_severity[severity]
    ]
    hit = len({finding.connection for finding in found} - {None})
    places = f" in {count_text(hit, 'connection')}" if hit and len(analysis) > 1 else ""
    cut = "" if total == len(found) else f" among the {len(found):,} costliest"
    return f"{count_text(total, 'finding')} ({', '.join(counts)}{cut}){places}{aside}; {checked}."


def value_text(name: str, value: float | int | str) -> str:
    """A value with its name in words: ``window_bytes`` of 65535 is ``window 65.5 kB``."""
    return " ".join(value_words(name, value))


def value_words(name: str, value: float | int | str) -> tuple[str, str]:
    """A value's name in words, and the value with its unit: ``window``, ``65.5 kB``."""
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


def frames_text(frames: Sequence[int]) -> str:
    """``frame 5`` or ``frames 5, 9``."""
    return f"{'frame' if len(frames) == 1 else 'frames'} {', '.join(map(str, frames))}"


def span_text(analysis: Analysis, evidence: Evidence) -> str | None:
    """When it happened, in seconds since the capture's first packet, as Wireshark shows time."""
    first_ns = analysis.capture.first_time_ns
    if evidence.start_ns is None or first_ns is None:
        return None
    of = f" ({evidence.span_of})" if evidence.span_of else ""
    start = f"{(evidence.start_ns - first_ns) / 1e9:.6f}"
    if evidence.end_ns is None or evidence.end_ns == evidence.start_ns:
        return f"at {start} s of the capture{of}"
    return f"from {start} to {(evidence.end_ns - first_ns) / 1e9:.6f} s of the capture{of}"


def _evidence(analysis: Analysis, evidence: Evidence) -> Iterator[tuple[str, str]]:
    if evidence.frames:
        of = f" ({evidence.frames_of})" if evidence.frames_of else ""
        yield "evidence", frames_text(evidence.frames) + of
    span = span_text(analysis, evidence)
    if span is not None:
        yield "when", span
    if evidence.values:
        yield "values", ", ".join(value_text(name, value) for name, value in evidence.values.items())
    if evidence.ruled_out:
        yield ruled_out_words(evidence.ruled_out)


def ruled_out_words(text: str) -> tuple[str, str]:
    """The other explanations under a label: what is ruled out stands there without its ``Not``."""
    if text.startswith(_OPEN):
        return "not ruled out", begin(text.removeprefix(_OPEN))
    return "ruled out", _NEGATION.sub(lambda found: f"{found[1]}{found[2].upper()}", text)


def _line(name: str, text: str) -> str:
    return f"{name:<9}  {name_text(text)}"
