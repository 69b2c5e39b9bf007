"""Figures as SVG pictures of a few elements, which need neither plotly.js nor a browser, for readers without scripts.

In: `data` and `layout` of a figure, with numpy arrays or in JSON form. Out: an SVG document without styles,
scripts or addresses, which the strictest page policy allows.
"""

from tcpwin.figures.svg.picture import LEAST_WIDTH, draw_still

__all__ = ["LEAST_WIDTH", "draw_still"]
