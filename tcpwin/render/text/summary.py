"""What limited a capture and its connections, as lines of a report: the paragraph, verdicts, time budgets, stalls.

In: summaries, and connections as measured. Out: lines. Only stalls read the source again.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.analysis import Stall
from tcpwin.figures import ITEM_WORDS
from tcpwin.limits import ITEMS, Analysis, Budget, Connection, Summary, Verdict, roles_of
from tcpwin.render.verdict_words import verdict_words
from tcpwin.units import bytes_text, count_text, name_text, share_text, time_text

BAR = 40
"""Characters of a bar of 100 %."""
STALLS_SHOWN = 10
PAUSES = ("application", "idle", "response")
"""Causes of silences in which the sender had nothing to send."""


def render_summary(summary: Summary, analysis: Analysis) -> list[str]:
    """The paragraph; of one connection its verdict, a line for each part."""
    if len(analysis) == 1 and summary.verdict is not None:
        return [*render_answer(summary, analysis.connections[0]), *([summary.caveat] if summary.caveat else [])]
    return [name_text(part) for part in summary.parts]


def render_answer(summary: Summary, connection: Connection) -> list[str]:
    """The answer on the only connection of a capture: what it carried, and its verdict."""
    verdict = summary.verdict or connection.verdict
    answer, *more = render_verdict(verdict)
    return [f"{summary.carried} {answer}", *more]


def render_verdict(verdict: Verdict) -> list[str]:
    """What limited a connection: the answer, what it cost, what to change, and what shows it; a line each."""
    words = verdict_words(verdict)
    lines = [f"{label}: {text}" for label, text in words.advice]
    if not words.why:
        return [words.answer, *lines]
    why = f"Evidence: {words.why}"
    if verdict.beside is not None:
        # What shows the limit stands below it, and above what is beside it.
        return [words.answer, why, *lines]
    return [words.answer, *lines[:-1], f"{why}; {words.evidence}"] if words.evidence else [words.answer, *lines, why]


def render_budgets(connection: Connection) -> Iterator[str]:
    """A table for each direction with data: item, time, share, bar."""
    roles = roles_of(connection)
    for name, direction in (("a_to_b", connection.a_to_b), ("b_to_a", connection.b_to_a)):
        if direction.data_segments or direction.missed_bytes:
            yield from _render_budget(roles[name[0]], connection.budget[name])


def _render_budget(sender: str, budget: Budget) -> Iterator[str]:
    yield ""
    title = f"where the {sender}'s time went"
    yield f"{title:32}{'time':>10}{'share':>8}"
    for item in sorted(ITEMS, key=lambda item: -budget.items_ns[item]):
        ns = budget.items_ns[item]
        if ns:
            share = budget.share(item)
            guess = " (suspected)" if item == "send_buffer" and budget.kernel is None else ""
            text, bar = share_text(share, places=1), "#" * round(share * BAR)
            yield f"{ITEM_WORDS[item] + guess:32}{time_text(ns):>10}{text:>8}   {bar}".rstrip()
    kernel, apart = budget.kernel, budget.disagreement
    if kernel is not None and apart is not None:
        window, buffer = time_text(kernel.rwnd_limited_ns), time_text(kernel.sndbuf_limited_ns)
        busy = time_text(kernel.busy_ns)
        yield f"its kernel was busy for {busy}, waiting for the window for {window}, for the send buffer for {buffer}"
        off = share_text(apart, places=1)
        yield f"window time by packets alone differs from the kernel's by {off} of the duration"


def longest_stalls(connection: Connection) -> tuple[list[Stall], int]:
    """The longest silences, in order of time, and how many more there are.

    Those in which nobody had anything to send are among them where there is room left.
    """
    stalls = connection.stalls
    worst = sorted(stalls, key=lambda stall: (stall.cause in PAUSES, -stall.duration_ns))[:STALLS_SHOWN]
    return sorted(worst, key=lambda stall: stall.start_ns), len(stalls) - len(worst)


def render_stalls(connection: Connection) -> Iterator[str]:
    """The longest silences: when, how long, what was waited for, in flight, between which frames."""
    shown, left = longest_stalls(connection)
    if not shown:
        return
    roles = roles_of(connection)
    yield ""
    yield f"{'silent at':>10}{'for':>10}  {'host':8}  {'cause':20}{'in flight':>10}   frames"
    for stall in shown:
        at, took = time_text(stall.start_ns - connection.start_ns), time_text(stall.duration_ns)
        cause = stall.cause.replace("_", " ")
        flight = bytes_text(stall.flight_bytes)
        frames = f"{stall.before_frame} to {stall.after_frame}"
        yield f"{at:>10}{took:>10}  {roles[stall.sender]:8}  {cause:20}{flight:>10}   {frames}"
    if left:
        yield f"{count_text(left, 'more silence')} not shown"
