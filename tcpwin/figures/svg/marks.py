"""SVG forms of plotly's symbols, dashes and patterns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tcpwin.figures.svg.writer import element

SYMBOLS = {
    "circle": "M-1 0a1 1 0 1 0 2 0a1 1 0 1 0-2 0z",
    "square": "M-.9-.9h1.8v1.8h-1.8z",
    "diamond": "M0-1.3L1.3 0 0 1.3-1.3 0z",
    "x": "M-1-.5L-.5-1 0-.5 .5-1 1-.5 .5 0 1 .5 .5 1 0 .5-.5 1-1 .5-.5 0z",
    "cross": "M-.35-1.1h.7v.75h.75v.7h-.75v.75h-.7v-.75h-.75v-.7h.75z",
    "triangle-up": "M0-1.2L1.1 .8h-2.2z",
    "triangle-down": "M0 1.2L1.1-.8h-2.2z",
    "triangle-left": "M-1.2 0L.8-1.1v2.2z",
    "triangle-right": "M1.2 0L-.8-1.1v2.2z",
    "star": "M0-1.4L.4-.4H1.4L.6 .25 .9 1.3 0 .65-.9 1.3-.6 .25-1.4-.4H-.4z",
    "star-triangle-up": "M0-1.5Q.1 .3 1.3 .9Q0 .5-1.3 .9Q-.1 .3 0-1.5z",
    "hexagon": "M0-1.1L.95-.55V.55L0 1.1-.95 .55V-.55z",
    "bowtie": "M-1.1-.9L1.1 .9V-.9L-1.1 .9z",
    "line-ew": "M-1.4 0H1.4",
}
"""Outlines around the origin; a symbol of size 2 has a radius of 1."""
DASHES = {"dash": "7 5", "dot": "2 3", "dashdot": "7 3 2 3"}
PATTERNS = {
    "/": "M0 6L6 0M-1 1L1-1M5 7L7 5",
    "x": "M0 0L6 6M0 6L6 0",
    "-": "M0 3H6",
    "|": "M3 0V6",
    "+": "M0 3H6M3 0V6",
    ".": "M2 3a1 1 0 1 0 2 0a1 1 0 1 0-2 0z",
}
"""Patterns on tiles of six by six."""


def symbol(name: str, size: float, colour: str, marker: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a symbol's outline as a path's `d`, and its attributes for its size."""
    is_open = name.endswith("-open")
    outline = SYMBOLS.get(name.removesuffix("-open"), SYMBOLS["circle"])
    line = marker.get("line", {})
    # Scaling a symbol also scales its stroke.
    radius = max(size / 2, 0.5)
    if is_open or name.startswith("line"):
        width = f"{max(line.get('width', 1), 1) / radius:.3g}"
        return outline, {"fill": "none", "stroke": colour, "stroke_width": width}
    edge = {"stroke": line["color"], "stroke_width": f"{line['width'] / radius:.3g}"} if line.get("color") else {}
    return outline, {"fill": colour, **edge}


def pattern_tile(id: str, shape: str, colour: str, ground: str | None) -> str:
    """Return a tile that repeats a pattern, over a background if there is one."""
    drawn = {"fill": colour} if shape == "." else {"fill": "none", "stroke": colour}
    under = "" if ground is None else element("rect", width=6, height=6, fill=ground)
    lines = element("path", d=PATTERNS.get(shape, PATTERNS["/"]), **drawn)
    return element("pattern", under, lines, id=id, width=6, height=6, patternUnits="userSpaceOnUse")
