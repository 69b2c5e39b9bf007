"""Figures of connections, captures and hosts, drawn with plotly or as SVG.

Names are loaded on first use. A module of `kinds` is one kind of figure, found by its name; a new one needs no other
edit.
"""

from tcpwin.lazy import attach

__getattr__, __dir__ = attach(__name__)
