"""What figures are drawn with: panels, axes, themes, spans, export."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpwin.lazy import loader

if TYPE_CHECKING:
    from tcpwin.figures.drawing.export import FORMATS, check, find_browser, format_of, write
    from tcpwin.figures.drawing.request import MAX_ROWS

_HOMES = {
    "export": (
        "FORMATS",
        "check",
        "find_browser",
        "format_of",
        "write",
    ),
    "request": ("MAX_ROWS",),
}

__all__ = [
    "FORMATS",
    "MAX_ROWS",
    "check",
    "find_browser",
    "format_of",
    "write",
]

__getattr__ = loader(__name__, _HOMES)
