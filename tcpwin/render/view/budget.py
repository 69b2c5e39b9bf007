"""Time budgets for tables and bars.

In: the time in each item, and the kernel's counts. Out: rows and parts of a bar, as text and shares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tcpwin.limits import GROUP_NAMES, GROUPS, ITEM_NAMES, ITEMS, Budget
from tcpwin.units import share_text, time_text

BAR_WIDTH = 1000
"""Width of a bar: parts are placed in thousandths."""


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """An item of a time budget; `fraction` is its share as a number from 0 to 1."""

    item: str
    group: str
    words: str
    time: str
    share: str
    fraction: float

    @property
    def percent(self) -> float:
        """The share as a number from 0 to 100."""
        return 100 * self.fraction


@dataclass(frozen=True, slots=True)
class BarPart:
    """A part of a bar: a group of the budget, with its place and width in `BAR_WIDTH`."""

    group: str
    words: str
    start: float
    width: float
    time: str
    share: str


def budget_rows(budget: Budget) -> list[BudgetRow]:
    """Return the items that took time, the largest first."""
    rows = [_row(item, budget.items_ns[item], budget.total_ns) for item in ITEMS if budget.items_ns[item]]
    if budget.kernel is None:
        rows = [_suspected(each) if each.item == "send_buffer" else each for each in rows]
    return sorted(rows, key=lambda row: -row.fraction)


def compare_budgets(
    sides: Sequence[Mapping[str, int]], duration_ns: int
) -> list[tuple[str, tuple[BudgetRow | None, ...]]]:
    """Return each item that took time on any side: its name, and its row on every side that has it."""
    found = []
    for item in ITEMS:
        rows = tuple(_row(item, side[item], duration_ns) if side.get(item) else None for side in sides)
        if any(rows):
            found.append((ITEM_NAMES[item], rows))
    return found


def budget_bar(items_ns: Mapping[str, int]) -> list[BarPart]:
    """Return the groups of a time budget as parts of a bar, the largest first."""
    total_ns = sum(items_ns.values())
    groups_ns = {group: sum(items_ns.get(item, 0) for item in items) for group, items in GROUPS.items()}
    parts: list[BarPart] = []
    start = 0.0
    for group, ns in sorted(groups_ns.items(), key=lambda each: -each[1]):
        if ns:
            width, share = BAR_WIDTH * ns / total_ns, share_text(ns / total_ns)
            parts.append(BarPart(group, GROUP_NAMES[group], round(start, 2), round(width, 2), time_text(ns), share))
            start += width
    return parts


def kernel_lines(budget: Budget) -> list[str]:
    """Return what the sender's kernel counted, and how far the packets differ; empty without a snapshot."""
    kernel, apart = budget.kernel, budget.disagreement
    if kernel is None or apart is None:
        return []
    window, buffer = time_text(kernel.rwnd_limited_ns), time_text(kernel.sndbuf_limited_ns)
    return [
        f"its kernel was busy for {time_text(kernel.busy_ns)}, waiting for the window for {window}, "
        f"for the send buffer for {buffer}",
        f"window time by packets alone differs from the kernel's by {share_text(apart, places=1)} of the duration",
    ]


def _row(item: str, ns: int, total_ns: int) -> BudgetRow:
    share = min(ns / total_ns, 1.0) if total_ns else 0.0
    group = next(group for group, items in GROUPS.items() if item in items)
    return BudgetRow(item, group, ITEM_NAMES[item], time_text(ns), share_text(share, places=1), share)


def _suspected(row: BudgetRow) -> BudgetRow:
    return BudgetRow(row.item, row.group, f"{row.words} (suspected)", row.time, row.share, row.fraction)
