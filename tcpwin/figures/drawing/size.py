"""A figure's document stays small: where much is to be drawn, all of it is drawn with fewer points and marks.

In: a request and how it is drawn. Out: the figure. Curves keep their extremes; a zoomed figure has the points between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tcpwin.figures.drawing.request import Request

MOST_BYTES = 140_000
"""Of a figure as JSON, where no more points are asked for than `POINTS`; else so much more."""
POINTS = 1000
TRIES = 4
BASE64 = 4 / 3 * (1 + 5 / 64)
"""Characters of a byte: plotly writes a slash, one of 64, in six."""
MARKUP = "<>/"
"""What plotly writes in six characters."""


def fit(request: Request, draw: Callable[[Request], dict[str, Any]]) -> dict[str, Any]:
    """What is drawn for the request, or for one with fewer points and marks where that would be too large."""
    most = MOST_BYTES * max(request.points / POINTS, 1)
    drawn = draw(request)
    for _ in range(TRIES):
        size = size_of(drawn)
        if size <= most:
            break
        # Titles and axes stay as large as they are.
        request = request.with_less(max(0.9 * most / size, 0.25))
        drawn = draw(request)
    return drawn


def size_of(value: Any) -> float:
    """About how many characters a value has as plotly writes it in JSON."""
    if isinstance(value, str):
        return len(value) + 3 + 5 * sum(map(value.count, MARKUP))
    if isinstance(value, np.ndarray):
        return value.nbytes * BASE64 + 32
    if isinstance(value, Mapping):
        return 2 + sum(len(name) + 4 + size_of(each) for name, each in value.items())
    if isinstance(value, list | tuple):
        return 2 + sum(map(size_of, value))
    return 6
