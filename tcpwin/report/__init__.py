"""The answer in words."""

from tcpwin.report._detail import render_connection
from tcpwin.report._problems import Problem, judge
from tcpwin.report._text import render

__all__ = ["Problem", "judge", "render", "render_connection"]
