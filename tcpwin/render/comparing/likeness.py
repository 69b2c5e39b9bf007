"""Text that compares a transfer with its nearest references, and a prediction with a run."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from tcpwin.reference import Against, Comparison, Fits, Prediction
from tcpwin.units import name_text

_WIDTH = 118


def render_likeness(comparison: Comparison) -> Iterator[str]:
    """Render a comparison: the verdict, a table of both sides, the nearest runs and the prediction."""
    measured = comparison.measured
    if measured is not None:
        yield name_text(measured.name)
    if comparison.lab is not None:
        yield from _lab(comparison.lab)
    if comparison.why_not is not None:
        yield from _wrapped(comparison.why_not)
    if comparison.verdict is not None:
        yield from _wrapped(comparison.verdict)
    if comparison.agreement is not None:
        yield from _wrapped(comparison.agreement)
    if comparison.nearest:
        yield ""
        runs = (f"{run.reference}/{run.name}" for run in comparison.beside)
        yield from _table(("", "yours", *runs), comparison.cells)
        yield ""
        yield "nearest, and why"
        for near in comparison.nearest:
            yield f"  {near.run.reference}/{near.run.name}, distance {near.distance:.2f}"
            for why, apart in zip(near.why, near.distances, strict=True):
                yield f"    {apart:4.2f}  {name_text(why)}"
    if comparison.prediction is not None:
        yield ""
        yield from _prediction(comparison.prediction)


def _lab(fits: Fits) -> Iterator[str]:
    """Render the runs of the lab's library."""
    if fits.text is not None:
        yield from _wrapped(fits.text)
        yield ""
        yield from _table(fits.heads, fits.cells)
        yield ""
    if fits.why_not is not None:
        yield from _wrapped(fits.why_not)


def render_against(against: Against) -> Iterator[str]:
    """Render a prediction next to the run that tests it."""
    yield from _table(("", "captured", "predicted", "run"), against.rows)
    yield from _wrapped(against.verdict)


def _prediction(prediction: Prediction) -> Iterator[str]:
    yield "expected with other settings, by the memory model"
    yield from _wrapped(prediction.text)
    yield from (f"  {line}" for line in prediction.lines)
    if prediction.assumptions:
        yield "  if"
        for each in prediction.assumptions:
            yield from textwrap.wrap(each, _WIDTH, initial_indent="  - ", subsequent_indent="    ")


def _wrapped(text: str) -> Iterator[str]:
    yield from textwrap.wrap(name_text(text), _WIDTH, initial_indent="  ", subsequent_indent="  ")


def _table(heads: Sequence[str], rows: Sequence[Sequence[str | None]]) -> Iterator[str]:
    table = [list(heads), *([name_text(cell) if cell else "–" for cell in row] for row in rows)]
    widths = [max(len(row[place]) for row in table) for place in range(len(heads))]
    for row in table:
        yield ("  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))).rstrip()
