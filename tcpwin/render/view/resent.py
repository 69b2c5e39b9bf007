"""The table of retransmitted and late segments, with the frames that show why."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence

from tcpwin import _engine
from tcpwin.analysis import Event
from tcpwin.units import time_text

EVIDENCE = tuple(_engine.EVENT_EVIDENCE)
"""Attribute, heading and kind (``frame``, ``interval`` or ``duration``) of the evidence for a retransmission."""
ROWS_SHOWN = 20
COLUMNS = 80
_AROUND = 42
"""Width of a row without its evidence, in characters."""
WIDTH = 76
"""Width of the lines with reasons: 80 columns minus the indent."""


def render_resent(events: Sequence[Event], *, start_ns: int) -> list[str]:
    """Render a row per event, with times from the connection's start; then the rules that decided, with confidence."""
    resent = [event for event in events if event.cause is not None]
    if not resent:
        return []
    rules = Counter((event.reason, event.confidence) for event in resent)
    numbers = {rule: number for number, rule in enumerate(rules, 1)}
    columns = _columns()
    evidence = "".join(f"{heading:>{width}}" for heading, width in columns)
    heads = f"{'frame':>7}{'at':>9}  {'cause':19}{evidence}{'why':>5}"
    lines = ["retransmitted or late:", heads]
    lines += [_row(event, start_ns, columns, numbers[event.reason, event.confidence]) for event in resent[:ROWS_SHOWN]]
    left = len(resent) - ROWS_SHOWN
    if left > 0:
        lines.append(f"{left:,} more: --json lists them all")
    for (reason, confidence), number in numbers.items():
        text = f"{reason}: {rules[reason, confidence]:,}, {confidence}"
        lines += textwrap.wrap(text, WIDTH, initial_indent=f"why {number}  ", subsequent_indent="       ")
    return lines


def evidence_texts(event: Event, missing: str = "–") -> tuple[str, ...]:
    """Return an event's evidence, in the order of `EVIDENCE`."""
    values = ((getattr(event, name), kind) for name, _, kind in EVIDENCE)
    return tuple(
        missing if value is None else str(value) if kind == "frame" else time_text(value) for value, kind in values
    )


def _columns() -> list[tuple[str, int]]:
    """Return the evidence that fits a terminal: headings, and widths including a space before each."""
    columns: list[tuple[str, int]] = []
    room = COLUMNS - _AROUND
    for _, heading, kind in EVIDENCE:
        width = max(9 if kind == "interval" else 8, len(heading) + 1)
        room -= width
        if room >= 0:
            columns.append((heading, width))
    return columns


def _row(event: Event, start_ns: int, columns: Sequence[tuple[str, int]], number: int) -> str:
    cause = (event.cause or "").replace("_", " ")
    evidence = "".join(
        f"{text:>{width}}" for text, (_, width) in zip(evidence_texts(event, "-"), columns, strict=False)
    )
    return f"{event.frame:>7}{time_text(event.time_ns - start_ns):>9}  {cause:19}{evidence}{number:>5}"
