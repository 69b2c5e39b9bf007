"""A verdict in every output: cells of a table, and the answer with cost, fix and evidence.

In: a verdict, or its stored fields. Out: VerdictRow, VerdictView. It judges nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tcpwin.limits import (
    LIMIT_NAMES,
    VERDICT_FIELDS,
    Analysis,
    Findings,
    Verdict,
    advice_label,
    cost_sentence,
    describe_verdict,
    judge_connection,
    worst,
)
from tcpwin.units import name_text, share_text, time_text

FULL_FIELDS = (
    *VERDICT_FIELDS,
    *("headline", "reason", "named", "answer", "beside_text", "cost_text", "time_ns", "frames_of", "when_text"),
    *("code", "rule", "frames", "lost_share", "also_ns"),
)
"""Attributes of `Verdict` in documents of one capture."""


@dataclass(frozen=True, slots=True)
class VerdictRow:
    """A verdict as cells of a table; a cell without a value is empty.

    Attributes:
        limit: the first limit; `limits` also names the second.
        problem: the limit that lost the time; empty unless the connection has a problem.
        is_elsewhere: whether `problem` is not the first limit.
        cost: cost of `problem`, marked as about (``~``) or at most (``≤``).
    """

    limit: str
    limits: str
    share: str
    confidence: str
    problem: str
    is_elsewhere: bool
    cost: str


class VerdictLine(NamedTuple):
    """A line below the answer; with `is_evidence`, the frames follow its text, which may be empty."""

    label: str
    text: str
    is_evidence: bool = False


@dataclass(frozen=True, slots=True)
class VerdictView:
    """A verdict in words.

    Attributes:
        text: a paragraph: answer, what else can be fixed, cost.
        label: owner, limit, share and confidence: ``the client's receive window (89 % of the time, likely)``.
        answer: limit, share and confidence, and what they mean.
        why: the evidence in numbers.
        beside: another limit that cost and fix refer to, with its cost; empty if there is none.
        cost: lost time, and the duration; empty without a problem (as is `fix`), or if `beside` states it.
        evidence: a display filter and the finding's rule; empty if the verdict rests on the time budget alone.
        advice: the labelled parts from `beside` to `evidence` that are not empty, in reading order.
        lines: everything that follows the answer, evidence included, in reading order.
        owner: who can change it: ``the client's application``; empty for nobody.
        frames: frames that show it; `frames_of` says which of how many.
    """

    row: VerdictRow
    text: str
    label: str
    answer: str
    why: str
    beside: str
    cost: str
    fix: str
    evidence: str
    advice: tuple[tuple[str, str], ...]
    lines: tuple[VerdictLine, ...]
    owner: str
    frames: tuple[int, ...]
    frames_of: str


def verdict_row(facts: Mapping[str, Any]) -> VerdictRow:
    """Return the cells of a verdict, given the fields that every machine form has."""
    limit, second, other = facts["limit"], facts["second_limit"], facts["also"]
    is_problem = bool(facts["is_problem"])
    has_cost = is_problem and facts["named_ns"] > 0
    return VerdictRow(
        limit=LIMIT_NAMES[limit],
        limits=" and ".join(LIMIT_NAMES[each] for each in (limit, second) if each),
        share="" if limit in ("none", "capture") else share_text(facts["share"]),
        confidence=facts["confidence"],
        problem=LIMIT_NAMES[other or limit] if is_problem else "",
        is_elsewhere=is_problem and bool(other),
        cost=f"{'≤' if _is_at_most(facts) else '~'} {time_text(facts['named_ns'])}" if has_cost else "",
    )


def _is_at_most(facts: Mapping[str, Any]) -> bool:
    """Return true if a cost is an upper bound: the true cost may be zero."""
    cost_ns = facts["cost_ns"]
    is_of_limit = not facts["also"] and facts["named_ns"] == cost_ns
    return is_of_limit and not facts["cost_low_ns"] and time_text(facts["cost_high_ns"]) == time_text(cost_ns)


def full_verdict(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict with its sentences and evidence, by the names that documents of one capture have."""
    return {name: getattr(verdict, name) for name in FULL_FIELDS}


def row_of(verdict: Verdict) -> VerdictRow:
    """Return the cells of a verdict."""
    return verdict_row(describe_verdict(verdict))


def view_verdict(verdict: Verdict) -> VerdictView:
    """Describe a verdict in words."""
    answer, why, beside = map(name_text, (verdict.answer, verdict.reason, verdict.beside_text))
    fix, when = (name_text(text or "") if verdict.is_problem else "" for text in (verdict.fix, verdict.when_text))
    cost = name_text(verdict.cost_text)
    evidence = frames_filter(verdict.frames)
    if evidence and verdict.code:
        of = f"{verdict.frames_of}; " if verdict.frames_of else ""
        evidence = name_text(f"{evidence} ({of}rule {verdict.code} {verdict.rule})")
    labelled = [(advice_label(label, verdict), text) for label, text in (("Fix", fix), ("Cost", cost), ("When", when))]
    if beside:
        label, _, text = beside.partition(": ")
        labelled.insert(0, (label, text))
    advice = [each for each in labelled if each[1]]
    lines = [VerdictLine(*each) for each in advice]
    if verdict.beside is None:
        lines += [VerdictLine("Evidence", why, bool(evidence))] if why or evidence else []
    else:
        # The evidence of the limit precedes the other limit, which has its own.
        lines[:0] = [VerdictLine("Evidence", why)] if why else []
        lines += [VerdictLine(advice_label("Evidence", verdict), "", True)] if evidence else []
    return VerdictView(
        row=row_of(verdict),
        text=name_text(" ".join([verdict.text, *cost_sentence(verdict)])),
        label=LIMIT_NAMES[verdict.limit] if verdict.limit in ("none", "capture") else name_text(verdict.named),
        answer=answer,
        why=why,
        beside=beside,
        cost=cost,
        fix=fix,
        evidence=evidence,
        advice=(*advice, *([(advice_label("Evidence", verdict), evidence)] if evidence else [])),
        lines=tuple(lines),
        owner="" if verdict.owner == "nobody" else owner_text(verdict.owner),
        frames=verdict.frames,
        frames_of=name_text(verdict.frames_of),
    )


def connection_line(analysis: Analysis, id: int, found: Findings) -> str:
    """Return what limited a connection and its cost, judged by these findings."""
    return view_verdict(judge_connection(analysis.connections[id], found.of(id))).text


def closing_line(analysis: Analysis, found: Findings) -> str | None:
    """Return the same for the worst connection; None if there is no connection."""
    ids = worst(analysis, 1, found)
    return f"Connection {ids[0]}: {connection_line(analysis, ids[0], found)}" if ids else None


def owner_text(owner: str) -> str:
    """Return who can change it: ``the client's application``, ``the network``."""
    end, _, what = owner.rpartition("_")
    return f"the {end}'s {what}" if end else owner if owner == "nobody" else f"the {what}"


def frames_filter(frames: Sequence[int]) -> str:
    """Return frames as a Wireshark display filter; empty without any.

    A set has no order in Wireshark, so frames that belong together, such as an original and its retransmission, stay
    next to each other.
    """
    return f"frame.number in {{{', '.join(map(str, dict.fromkeys(frames)))}}}" if frames else ""
