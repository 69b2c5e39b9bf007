"""A verdict in words, the answer first: the limit, what it cost, what to change, what shows it.

In: a verdict. Out: VerdictWords. It judges nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tcpwin.limits import LIMIT_NAMES, Analysis, Findings, Verdict, advice_label, cost_sentence, judge_connection, worst
from tcpwin.units import name_text


class VerdictWords(NamedTuple):
    """A verdict in words.

    Attributes:
        answer: limit, share and confidence, and what they mean.
        why: with numbers.
        beside: the limit beside it that cost and fix are about, and what it cost; empty where there is none.
        cost: what was lost, of how long; empty where nothing is wrong, as `fix`, or where `beside` says it.
        evidence: a display filter, and the finding that says so; empty where the time budget alone says it.
        advice: what is not empty of the others but `answer` and `why`, each under its label, in the order in which
            they are read: cost, time, fix and evidence below the limit that they are about.
    """

    answer: str
    why: str
    beside: str
    cost: str
    fix: str
    evidence: str
    advice: tuple[tuple[str, str], ...]


def verdict_words(verdict: Verdict) -> VerdictWords:
    """The words for a verdict."""
    fix = name_text(verdict.fix or "") if verdict.is_problem else ""
    evidence = frames_filter(verdict.frames) if verdict.frames else ""
    if evidence and verdict.code:
        of = f"{verdict.frames_of}; " if verdict.frames_of else ""
        evidence += f" ({of}rule {verdict.code} {verdict.rule})"
    cost, evidence = name_text(verdict.cost_text), name_text(evidence)
    when = name_text(verdict.when_text) if verdict.is_problem else ""
    labelled = (("Cost", cost), ("When", when), ("Fix", fix), ("Evidence", evidence))
    advice = [(advice_label(label, verdict), text) for label, text in labelled if text]
    beside = name_text(verdict.beside_text)
    if beside:
        label, _, text = beside.partition(": ")
        advice.insert(0, (label, text))
    return VerdictWords(
        answer=name_text(verdict.answer),
        why=name_text(verdict.reason),
        beside=beside,
        cost=cost,
        fix=fix,
        evidence=evidence,
        advice=tuple(advice),
    )


def connection_line(analysis: Analysis, id: int, found: Findings) -> str:
    """What limited a connection and what that cost, by what rules found."""
    connection = analysis.connections[id]
    verdict = judge_connection(connection, found.of(id))
    return name_text(" ".join([verdict.text, *cost_sentence(verdict)]))


def closing_line(analysis: Analysis, found: Findings) -> str | None:
    """What limited the worst connection; None without any."""
    ids = worst(analysis, 1, found)
    return f"Connection {ids[0]}: {connection_line(analysis, ids[0], found)}" if ids else None


def limit_words(verdict: Verdict) -> str:
    """Whose limit, share and confidence: ``the client's receive window (89 % of the time, likely)``."""
    return LIMIT_NAMES[verdict.limit] if verdict.limit in ("none", "capture") else name_text(verdict.named)


def frames_filter(frames: Sequence[int]) -> str:
    """Frames as a display filter of Wireshark, whose sets have no order: two frames that belong together, such as an
    original and its retransmission, stay side by side."""
    return f"frame.number in {{{', '.join(map(str, dict.fromkeys(frames)))}}}"
