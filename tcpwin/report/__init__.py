"""The answer: in words, in figures.

Names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpwin._lazy import loader

if TYPE_CHECKING:
    from tcpwin.report._analysis import Analysis, Connection, analyze
    from tcpwin.report._detail import render_connection
    from tcpwin.report._problems import Problem, find_held_back, judge
    from tcpwin.report._text import render
    from tcpwin.report._units import name_text

_HOMES = {
    "_analysis": ("Analysis", "Connection", "analyze"),
    "_detail": ("render_connection",),
    "_problems": ("Problem", "find_held_back", "judge"),
    "_text": ("render",),
    "_units": ("name_text",),
}

__all__ = [
    "Analysis",
    "Connection",
    "Problem",
    "analyze",
    "find_held_back",
    "judge",
    "name_text",
    "render",
    "render_connection",
]

__getattr__ = loader(__name__, _HOMES)
