"""Figures as pictures that need neither plotly.js nor a browser: SVG of a few elements, for readers without scripts.

In: `data` and `layout` of a figure, with numpy arrays or in JSON form. Out: an SVG document without styles,
scripts or addresses, which the strictest page policy allows.
"""

from tcpwin.figures.svg.picture import LEAST_WIDTH, draw_still

__all__ = ["LEAST_WIDTH", "draw_still"]
