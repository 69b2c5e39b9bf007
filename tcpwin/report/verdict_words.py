"""A verdict in words, the answer first: the limit, what it cost, what to change, what shows it.

In: a verdict. Out: VerdictWords. It judges nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcpwin.analysis import Analysis
from tcpwin.limits import LIMIT_NAMES, Findings, Verdict, advice_label, judge_connection, worst
from tcpwin.units import name_text, time_text


@dataclass(frozen=True, slots=True)
class VerdictWords:
    """A verdict in words.

    Attributes:
        answer: limit, share and confidence, and what they mean.
        why: with numbers.
        cost: what was lost, of how long; empty where nothing is wrong, as `fix`, or where the answer says it.
        advice: what of cost and fix is not empty, under a label that says which limit it is about.
        evidence: a display filter, and the finding that says so; empty where the time budget alone says it.
    """

    answer: str
    why: str
    cost: str
    fix: str
    evidence: str
    advice: tuple[tuple[str, str], ...]


def verdict_words(verdict: Verdict, duration_ns: int) -> VerdictWords:
    """The words for a verdict on a connection of such a duration."""
    is_told = verdict.also is not None and verdict.also != verdict.second_limit
    cost = f"about {time_text(verdict.named_ns)} of {time_text(duration_ns)}"
    cost = cost if verdict.is_problem and not is_told else ""
    fix = name_text(verdict.fix or "") if verdict.is_problem else ""
    evidence = frames_filter(verdict.frames) if verdict.frames else ""
    if evidence and verdict.code:
        evidence += f" (rule {verdict.code} {verdict.rule})"
    if evidence and verdict.beside is not None:
        evidence = f"{verdict.beside}: {evidence}"
    return VerdictWords(
        answer=name_text(verdict.text),
        why=name_text(verdict.reason),
        cost=cost,
        fix=fix,
        evidence=name_text(evidence),
        advice=tuple((advice_label(name, verdict), text) for name, text in (("Cost", cost), ("Fix", fix)) if text),
    )


def connection_line(analysis: Analysis, id: int, found: Findings) -> str:
    """What limited a connection and what that cost, by what rules found."""
    connection = analysis.connections[id]
    words = verdict_words(judge_connection(connection, found.of(id)), connection.duration_ns)
    return " ".join([words.answer, *(f"{name}: {text}." for name, text in words.advice if text == words.cost)])


def closing_line(analysis: Analysis, found: Findings) -> str | None:
    """What limited the worst connection; None without any."""
    ids = worst(analysis, 1, found)
    return f"Connection {ids[0]}: {connection_line(analysis, ids[0], found)}" if ids else None


def limit_words(verdict: Verdict) -> str:
    """Whose limit, share and confidence: ``the client's receive window (89 %, likely)``."""
    if verdict.limit in ("none", "capture"):
        return LIMIT_NAMES[verdict.limit]
    return name_text(verdict.headline.removeprefix("Limited by "))


def frames_filter(frames: Sequence[int]) -> str:
    """Frames as a display filter of Wireshark."""
    return f"frame.number in {{{', '.join(map(str, sorted(set(frames))))}}}"
