"""Several captures as a table: a row for each, with the verdict on its worst connection.

In: analyses, one at a time, which may be dropped afterwards. Out: rows that another process can send; a table of them,
and the answers on the worst.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcpwin.limits import Analysis
from tcpwin.render.text.connections import NOTHING, ConnectionTable
from tcpwin.render.text.summary import render_verdict
from tcpwin.render.view.verdict import view_verdict
from tcpwin.units import count_text, name_text

HEADS = {
    "capture": False,
    "packets": True,
    "connections": True,
    "with a problem": True,
    "worst limited by": False,
    "share": True,
    "cost": True,
}
ANSWERED = 3
"""Number of captures whose answers follow the table."""


@dataclass(frozen=True, slots=True)
class CaptureRow:
    """A capture in a few words.

    Attributes:
        cells: cells of the table.
        cost_ns: cost of the worst connection's limit, by which the rows are sorted.
        problems: number of connections with a problem.
        answer: the verdict on the worst connection, line by line.
    """

    cells: tuple[str, ...]
    cost_ns: int
    problems: int
    answer: tuple[str, ...]


def capture_row(analysis: Analysis, file: str) -> CaptureRow:
    """Return the row of a capture, under the name by which it was read."""
    problems = analysis.problems
    counts = (f"{analysis.capture.packets:,}", f"{len(analysis):,}", f"{len(problems):,}")
    verdict = analysis.summary.verdict
    if verdict is None:
        return CaptureRow((name_text(file), *counts, NOTHING, NOTHING, NOTHING), 0, len(problems), ())
    worst = analysis.worst(1)[0].id
    shown = view_verdict(verdict)
    first, *more = render_verdict(shown)
    return CaptureRow(
        (
            name_text(file),
            *counts,
            shown.label.split(" (")[0],
            shown.row.share or NOTHING,
            shown.row.cost or NOTHING,
        ),
        verdict.named_ns if verdict.is_problem else 0,
        len(problems),
        (f"{name_text(file)}, connection {worst}: {first}", *(f"    {line}" for line in more)),
    )


def render_captures(
    rows: Sequence[CaptureRow], unreadable: int, limit: int | None = None
) -> list[list[str] | ConnectionTable]:
    """Render the number of captures with a problem and the answers on the worst as lines, and the table of all
    captures.
    """
    ordered = sorted(rows, key=lambda row: (not row.problems, -row.cost_ns))
    troubled = sum(bool(row.problems) for row in rows)
    head = f"{count_text(len(rows) + unreadable, 'capture')}, {troubled:,} with a problem"
    head += f", {unreadable:,} unreadable." if unreadable else "."
    shown = ordered if limit is None else ordered[:limit]
    table = ConnectionTable(HEADS, [row.cells for row in shown], [bool(row.problems) for row in shown])
    lines: list[str] = []
    if len(shown) < len(ordered):
        lines.append(f"{count_text(len(ordered) - len(shown), 'more capture')} not shown: --limit N shows more.")
    for row in [row for row in shown if row.problems][:ANSWERED]:
        lines += ["", *row.answer]
    return [[head, ""], table, lines] if shown else [[head], lines]
