"""Figures as pictures that need neither plotly.js nor a browser: SVG of a few elements, for readers without scripts.

In: `data` and `layout` of a figure, with numpy arrays or as JSON has them. Out: a document of SVG without styles,
scripts or addresses, so that the strictest policy of a page shows it.
"""

from tcpwin.figures.svg.picture import LEAST_WIDTH, draw_still

__all__ = ["LEAST_WIDTH", "draw_still"]
