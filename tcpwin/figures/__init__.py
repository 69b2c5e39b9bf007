"""Figures of connections, captures and hosts, drawn with plotly or as SVG.

Names are loaded on first use. A module of `kinds` is one kind of figure, found by its name; a new one needs no other
edit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpwin.lazy import loader

if TYPE_CHECKING:
    from tcpwin.figures.budget_words import ITEM_WORDS
    from tcpwin.figures.drawing.kind import FigureKind
    from tcpwin.figures.drawing.theme import THEMES
    from tcpwin.figures.figure import draw, get, names, plain, plain_pair, plain_timeline, still, timeline
    from tcpwin.figures.ladder import draw_ladder
    from tcpwin.figures.progress import Progress, plain_progress
    from tcpwin.figures.svg.picture import LEAST_WIDTH
    from tcpwin.figures.svg.sketch import (
        LIFE_COLUMNS,
        SKETCH_BUCKETS,
        BarPart,
        Life,
        Sketch,
        budget_bar,
        colours_css,
        draw_blocks,
        draw_life,
        draw_sketch,
    )

_HOMES = {
    "budget_words": ("ITEM_WORDS",),
    "drawing.kind": ("FigureKind",),
    "drawing.theme": ("THEMES",),
    "figure": (
        "draw",
        "get",
        "names",
        "plain",
        "plain_pair",
        "plain_timeline",
        "still",
        "timeline",
    ),
    "ladder": ("draw_ladder",),
    "progress": (
        "Progress",
        "plain_progress",
    ),
    "svg.picture": ("LEAST_WIDTH",),
    "svg.sketch": (
        "BarPart",
        "LIFE_COLUMNS",
        "Life",
        "SKETCH_BUCKETS",
        "Sketch",
        "budget_bar",
        "colours_css",
        "draw_blocks",
        "draw_life",
        "draw_sketch",
    ),
}

__all__ = [
    "ITEM_WORDS",
    "LEAST_WIDTH",
    "LIFE_COLUMNS",
    "SKETCH_BUCKETS",
    "THEMES",
    "BarPart",
    "FigureKind",
    "Life",
    "Progress",
    "Sketch",
    "budget_bar",
    "colours_css",
    "draw",
    "draw_blocks",
    "draw_ladder",
    "draw_life",
    "draw_sketch",
    "get",
    "names",
    "plain",
    "plain_pair",
    "plain_progress",
    "plain_timeline",
    "still",
    "timeline",
]

__getattr__ = loader(__name__, _HOMES)
