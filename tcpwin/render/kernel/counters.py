"""Network stack counters as text: the growth of each, its rate, and its meaning.

In: steps of counters, or a single sample. Out: lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from tcpwin.hosts import GAUGES, MEANINGS, CounterDelta, CounterRow, CounterSample, CounterSteps
from tcpwin.render.kernel.sockets import span_text
from tcpwin.units import clock_text, count_text, time_text

_WIDTH = 120
_LEAST_MEANING = 40


def kind_text(is_increment: bool | None) -> str:
    """Describe the numbers of a sample: totals or increments."""
    if is_increment is None:
        return "unclear whether counted since boot or since the previous sample"
    return "increments since the previous sample" if is_increment else "counts since boot"


def render_total(total: CounterDelta, rows: list[CounterRow], *, samples: int, is_all: bool) -> Iterator[str]:
    """Render the growth between the first sample and the last."""
    yield f"{count_text(samples, 'sample')}, {span_text(total.start_ns, total.end_ns)}"
    yield ""
    yield from _render_rows(rows, "increase")
    yield from _render_remarks(total, rows, is_all=is_all)


def render_step(step: CounterDelta, rows: list[CounterRow]) -> Iterator[str]:
    """Render the growth between two samples; empty if nothing grew."""
    if not rows:
        return
    took = "" if step.seconds is None else f" ({time_text(round(step.seconds * 1e9))})"
    if step.start_ns is None and step.end_ns is None:
        yield "at an unknown time"
    else:
        yield f"{clock_text(step.start_ns)} to {clock_text(step.end_ns)}{took}"
    width = max(len(row.name) for row in rows)
    for row in rows:
        yield f"  {row.name:{width}}  {_number(row):>12}  {_rate(row):>10}".rstrip()


def render_steps_end(steps: CounterSteps) -> Iterator[str]:
    """Render the lines below the steps, once all of them have been read."""
    total = steps.total
    if total is None:
        return
    yield ""
    yield f"{count_text(steps.count, 'step')}, {span_text(total.start_ns, total.end_ns)}"
    yield from _wrapped(_remarks(total))


def render_sample(sample: CounterSample, rows: list[CounterRow], *, is_all: bool) -> Iterator[str]:
    """Render the numbers of a single sample, which has no other to compare with."""
    when = "at an unknown time" if sample.time_ns is None else span_text(sample.time_ns, sample.time_ns)
    yield f"1 sample, {when}: {kind_text(sample.is_increment)}"
    yield ""
    yield from _render_rows(rows, "printed")
    values = {name: value for name, value in sample.values.items() if name not in GAUGES}
    yield from _render_remarks(CounterDelta(None, None, values, sample.resets), rows, is_all=is_all)


def _render_rows(rows: list[CounterRow], title: str) -> Iterator[str]:
    if not rows:
        return
    has_rates = any(row.per_second is not None for row in rows)
    table = [["counter", title, *(["per second"] if has_rates else [])]]
    table += [[row.name, _number(row), *([_rate(row)] if has_rates else [])] for row in rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    left = max(_WIDTH - sum(widths) - 2 * len(widths), _LEAST_MEANING)
    meanings = [["what it counts"], *(wrap(row.meaning or "", left) for row in rows)]
    for words, lines in zip(table, meanings, strict=True):
        cells = [words[0].ljust(widths[0])]
        cells += [word.rjust(width) for word, width in zip(words[1:], widths[1:], strict=True)]
        yield "  ".join([*cells, *lines[:1]]).rstrip()
        for line in lines[1:]:
            yield " " * (sum(widths) + 2 * len(widths)) + line


def _render_remarks(total: CounterDelta, rows: list[CounterRow], *, is_all: bool) -> Iterator[str]:
    remarks = []
    if not rows:
        remarks.append("Nothing was counted." if is_all else "None of the counters explained here grew.")
    others = sum(1 for name, value in total.values.items() if value and name not in MEANINGS)
    if others and not is_all:
        remarks.append(f"{count_text(others, 'more counter')} grew: --all shows them.")
    if rows:
        remarks += _remarks(total)
    if remarks and rows:
        yield ""
    yield from _wrapped(remarks)


def _wrapped(remarks: list[str]) -> Iterator[str]:
    for remark in remarks:
        yield from wrap(remark, _WIDTH)


def _remarks(total: CounterDelta) -> list[str]:
    remarks = []
    if total.resets:
        remarks.append(
            f"≥: {count_text(len(total.resets), 'counter')} ran backwards: the host or its network namespace "
            "restarted, or a counter wrapped. All increases are lower bounds."
        )
    if total.is_assumed:
        remarks.append(
            "The samples do not show whether they count since boot or since the previous sample; it was inferred from "
            "whether a count fell."
        )
    if total.start_ns is not None and total.seconds is None:
        remarks.append("No rates: the samples have the same time, or are not in time order.")
    return remarks


def _number(row: CounterRow) -> str:
    number = row.printed if row.increase is None else row.increase
    return f"{'≥ ' if row.is_reset else ''}{number or 0:,}"


def _rate(row: CounterRow) -> str:
    rate = row.per_second
    if rate is None:
        return ""
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"
