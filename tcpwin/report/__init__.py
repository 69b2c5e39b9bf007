"""The answer: in words, in figures.

Names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpwin.lazy import loader

if TYPE_CHECKING:
    from tcpwin.report.connection_text import render_connection
    from tcpwin.report.text import render

_HOMES = {
    "connection_text": ("render_connection",),
    "text": ("render",),
}

__all__ = [
    "render",
    "render_connection",
]

__getattr__ = loader(__name__, _HOMES)
