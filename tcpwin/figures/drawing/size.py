"""A size limit for figures: if a figure is too large, all of it is drawn with fewer points and marks.

In: a request and the function that draws it. Out: the figure. Curves keep their extremes; zooming shows the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tcpwin.figures.drawing.request import Request

MOST_BYTES = 140_000
"""Size limit of a figure as JSON, up to `POINTS` points; with more points it grows in proportion."""
POINTS = 1000
TRIES = 4
BASE64 = 4 / 3 * (1 + 5 / 64)
"""Characters per byte: plotly writes a slash, one of 64 characters, as six."""
MARKUP = "<>/"
"""Characters that plotly writes as six."""


def fit(request: Request, draw: Callable[[Request], dict[str, Any]]) -> dict[str, Any]:
    """Draw the request, or one with fewer points and marks if that is too large."""
    most = MOST_BYTES * max(request.points / POINTS, 1)
    drawn = draw(request)
    for _ in range(TRIES):
        size = size_of(drawn)
        if size <= most:
            break
        # Titles and axes keep their size.
        request = request.with_less(max(0.9 * most / size, 0.25))
        drawn = draw(request)
    return drawn


def size_of(value: Any) -> float:
    """Estimate the characters of a value in plotly's JSON."""
    if isinstance(value, str):
        return len(value) + 3 + 5 * sum(map(value.count, MARKUP))
    if isinstance(value, np.ndarray):
        return value.nbytes * BASE64 + 32
    if isinstance(value, Mapping):
        return 2 + sum(len(name) + 4 + size_of(each) for name, each in value.items())
    if isinstance(value, list | tuple):
        return 2 + sum(map(size_of, value))
    return 6
