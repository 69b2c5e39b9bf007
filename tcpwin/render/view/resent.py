"""The table of what was sent again or came late, with the frames that show why."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence

from tcpwin.analysis import Event
from tcpwin.units import time_text

ROWS_SHOWN = 20
WIDTH = 76
"""Of the lines that say why: 80 columns less the indent."""


def render_resent(events: Sequence[Event], *, start_ns: int) -> list[str]:
    """A row each, times from the connection's start; below them the rules that decided, with their confidence."""
    resent = [event for event in events if event.cause is not None]
    if not resent:
        return []
    rules = Counter((event.reason, event.confidence) for event in resent)
    numbers = {rule: number for number, rule in enumerate(rules, 1)}
    heads = f"{'frame':>7}{'at':>9}  {'cause':19}{'original':>9}{'by ACK':>8}{'age':>9}{'RTO':>8}{'why':>5}"
    lines = ["sent again, or late:", heads]
    lines += [_row(event, start_ns, numbers[event.reason, event.confidence]) for event in resent[:ROWS_SHOWN]]
    left = len(resent) - ROWS_SHOWN
    if left > 0:
        lines.append(f"{left:,} more: --json lists them all")
    for (reason, confidence), number in numbers.items():
        text = f"{reason}: {rules[reason, confidence]:,}, {confidence}"
        lines += textwrap.wrap(text, WIDTH, initial_indent=f"why {number}  ", subsequent_indent="       ")
    return lines


def _row(event: Event, start_ns: int, number: int) -> str:
    cause = (event.cause or "").replace("_", " ")
    frames = f"{_frame_text(event.original_frame):>9}{_frame_text(event.trigger_frame):>8}"
    ages = f"{_age_text(event.age_ns):>9}{_age_text(event.rto_ns):>8}"
    return f"{event.frame:>7}{time_text(event.time_ns - start_ns):>9}  {cause:19}{frames}{ages}{number:>5}"


def _frame_text(frame: int | None) -> str:
    return "-" if frame is None else str(frame)


def _age_text(ns: int | None) -> str:
    return "-" if ns is None else time_text(ns)
