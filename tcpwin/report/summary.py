"""What limited a capture and its connections, as lines of a report: the paragraph, verdicts, time budgets, stalls.

In: summaries, and connections as measured. Out: lines. Only stalls read the source again.
"""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from tcpwin.analysis import Connection, Stall
from tcpwin.limits import ITEMS, Budget, Summary
from tcpwin.report.budget_words import ITEM_WORDS
from tcpwin.report.verdict_words import verdict_words
from tcpwin.units import bytes_text, count_text, name_text, time_text

WIDTH = 120
BAR = 40
"""Characters of a bar of 100 %."""
STALLS_SHOWN = 10
PAUSES = ("application", "idle", "response")
"""Causes of silences in which the sender had nothing to send."""


def render_summary(summary: Summary) -> list[str]:
    """The paragraph."""
    return wrap(name_text(summary.text), WIDTH, break_long_words=False, break_on_hyphens=False)


def render_verdict(connection: Connection) -> list[str]:
    """What limited a connection: the answer, what it cost, what to change, and what shows it."""
    words = verdict_words(connection.verdict, connection.duration_ns)
    lines = [f"{words.answer} ({words.why})"]
    if words.cost:
        lines.append(f"{words.cost} Fix: {words.fix}" if words.fix else words.cost)
    if words.evidence:
        lines.append(f"Evidence: {words.evidence}")
    return lines


def render_budgets(connection: Connection) -> Iterator[str]:
    """A table for each direction with data: item, time, share, bar."""
    for name, sender, direction in (("a_to_b", "a", connection.a_to_b), ("b_to_a", "b", connection.b_to_a)):
        if direction.data_segments or direction.missed_bytes:
            yield from _render_budget(sender, connection.budget[name])


def _render_budget(sender: str, budget: Budget) -> Iterator[str]:
    yield ""
    yield f"{f'where the time of {sender} went':32}{'time':>10}{'share':>8}"
    for item in sorted(ITEMS, key=lambda item: -budget.items_ns[item]):
        ns = budget.items_ns[item]
        if ns:
            share = budget.share(item)
            guess = " (suspected)" if item == "send_buffer" and budget.kernel is None else ""
            row = f"{ITEM_WORDS[item] + guess:32}{time_text(ns):>10}{share:>8.1%}   {'#' * round(share * BAR)}"
            yield row.rstrip()
    kernel, apart = budget.kernel, budget.disagreement
    if kernel is not None and apart is not None:
        window, buffer = time_text(kernel.rwnd_limited_ns), time_text(kernel.sndbuf_limited_ns)
        busy = time_text(kernel.busy_ns)
        yield f"its kernel was busy for {busy}, waiting for the window for {window}, for the send buffer for {buffer}"
        yield f"the window's time by the packets alone is {apart:.1%} of the duration off the kernel's"


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
    yield ""
    yield f"{'silent at':>10}{'for':>10}  {'of':2}  {'because of':20}{'in flight':>10}   frames"
    for stall in shown:
        at, took = time_text(stall.start_ns - connection.start_ns), time_text(stall.duration_ns)
        cause = stall.cause.replace("_", " ")
        flight = bytes_text(stall.flight_bytes)
        frames = f"{stall.before_frame} to {stall.after_frame}"
        yield f"{at:>10}{took:>10}  {stall.sender:2}  {cause:20}{flight:>10}   {frames}"
    if left:
        yield f"{count_text(left, 'more silence')} not shown"
