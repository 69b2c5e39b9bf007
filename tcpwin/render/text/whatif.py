"""The predicted effect of a change, in words: the path, the prediction, and each limit lifted alone."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from tcpwin.limits import LIMIT_NAMES
from tcpwin.paths import Prediction, WhatIf, path_rows
from tcpwin.units import name_text, rate_text, time_text

_WIDTH, _LEAST_WIDTH = 120, 40


def render_whatif(found: WhatIf) -> Iterator[str]:
    """Render the path as the capture shows it, then the prediction."""
    yield f"connection {found.path.connection}: {found.verdict.text}"
    yield ""
    yield "path, as the capture shows it"
    rows = path_rows(found.path)
    names, values = (max(len(row[place]) for row in rows) for place in (0, 1))
    for name, value, how in rows:
        lead = f"  {name:{names}}  {name_text(value):{values}}  "
        first, *rest = textwrap.wrap(name_text(how), max(_WIDTH - len(lead), _LEAST_WIDTH)) or [""]
        yield f"{lead}{first}".rstrip()
        yield from (f"{'':{len(lead)}}{line}" for line in rest)
    for note in found.path.notes:
        yield from textwrap.wrap(name_text(note), _WIDTH, initial_indent="  ! ", subsequent_indent="    ")
    if found.prediction is not None:
        yield ""
        yield from _prediction(found.prediction)
    if found.each or found.unsaid:
        yield ""
        yield "each limit lifted alone"
        yield from _each(found)


def _prediction(prediction: Prediction) -> Iterator[str]:
    duration, goodput = prediction.duration_ns, prediction.goodput_bps
    yield f"with {', '.join(prediction.changes)}"
    span = f"{time_text(duration.low)} to {time_text(duration.high)}"
    yield f"  duration    {time_text(duration.likely)} ({span}) instead of {time_text(prediction.before_ns)}"
    span = f"{rate_text(goodput.low)} to {rate_text(goodput.high)}"
    yield f"  throughput  {rate_text(goodput.likely)} ({span}) instead of {rate_text(prediction.before_bps)}"
    yield f"  limited by  {LIMIT_NAMES[prediction.limit]}; before: {LIMIT_NAMES[prediction.before_limit]}"
    yield f"  confidence  {prediction.confidence}"
    for doubt in prediction.doubts:
        yield from textwrap.wrap(f"{doubt}.", _WIDTH, initial_indent="  - ", subsequent_indent="    ")


def _each(found: WhatIf) -> Iterator[str]:
    head = ("lifted", "gains", "takes then", "between", "then limited by", "")
    rows = [
        (
            LIMIT_NAMES[prediction.changes[0].removeprefix("lift ")],
            time_text(max(prediction.gain_ns, 0)),
            time_text(prediction.duration_ns.likely),
            f"{time_text(prediction.duration_ns.low)} and {time_text(prediction.duration_ns.high)}",
            LIMIT_NAMES[prediction.limit],
            prediction.confidence,
        )
        for prediction in found.each
    ]
    widths = [max(len(row[place]) for row in (head, *rows)) for place in range(len(head))]
    for row in (head, *rows) if rows else ():
        yield ("  " + "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True))).rstrip()
    for limit, reason in found.unsaid:
        yield from textwrap.wrap(
            f"{LIMIT_NAMES[limit]}: not predicted; {reason}", _WIDTH, initial_indent="  ", subsequent_indent="    "
        )
