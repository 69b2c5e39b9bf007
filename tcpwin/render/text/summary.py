"""The limits of a capture and its connections, as lines of a report: paragraph, verdicts, time budgets, stalls.

In: summaries, and connections as measured. Out: lines. Only stalls read the source again.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits import Analysis, Budget, Connection, Summary, roles_of
from tcpwin.render.view.budget import budget_rows, kernel_lines
from tcpwin.render.view.verdict import VerdictView, view_verdict
from tcpwin.units import count_text, name_text

BAR = 40
"""Width of a 100 % bar, in characters."""


def render_summary(summary: Summary, analysis: Analysis) -> list[str]:
    """Render the paragraph; for a single connection its verdict, one line for each part."""
    if len(analysis) == 1 and summary.verdict is not None:
        answer, *more = render_verdict(view_verdict(summary.verdict))
        return [f"{summary.carried} {answer}", *more, *([summary.caveat] if summary.caveat else [])]
    return [name_text(part) for part in summary.parts]


def render_verdict(verdict: VerdictView) -> list[str]:
    """Render what limited a connection: the answer, its cost, the fix and the evidence, a line each."""
    lines = [verdict.answer]
    for label, text, is_evidence in verdict.lines:
        evidence = verdict.evidence if is_evidence else ""
        lines.append(f"{label}: {'; '.join(filter(None, (text, evidence)))}")
    return lines


def render_budgets(connection: Connection) -> Iterator[str]:
    """Render a table for each direction with data: item, time, share, bar."""
    roles = roles_of(connection)
    for name, direction in (("a_to_b", connection.a_to_b), ("b_to_a", connection.b_to_a)):
        if direction.data_segments or direction.missed_bytes:
            yield from _render_budget(roles[name[0]], connection.budget[name])


def _render_budget(sender: str, budget: Budget) -> Iterator[str]:
    yield ""
    title = f"where the {sender}'s time went"
    yield f"{title:32}{'time':>10}{'share':>8}"
    for row in budget_rows(budget):
        bar = "#" * round(row.fraction * BAR)
        yield f"{row.words:32}{row.time:>10}{row.share:>8}   {bar}".rstrip()
    yield from kernel_lines(budget)


def render_stalls(connection: Connection) -> Iterator[str]:
    """Render the longest silences: when, how long, whose, why, in flight, between which frames."""
    from tcpwin.render.view.connection import longest_stalls

    shown, left = longest_stalls(connection)
    if not shown:
        return
    yield ""
    yield f"{'silent at':>10}{'for':>10}  {'host':8}  {'cause':20}{'in flight':>10}   frames"
    for at, took, host, cause, flight, frames in shown:
        yield f"{at:>10}{took:>10}  {host:8}  {cause:20}{flight:>10}   {frames}"
    if left:
        yield f"{count_text(left, 'more silence')} not shown"
