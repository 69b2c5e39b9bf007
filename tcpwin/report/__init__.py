"""The answer: in words, in figures.

Names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

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


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'tcpwin.report' has no attribute {name!r}")
    value = getattr(import_module(f"tcpwin.report.{home}"), name)
    globals()[name] = value
    return value
