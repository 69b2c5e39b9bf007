"""The answer in words."""

from tcpwin.report._detail import render_connection
from tcpwin.report._problems import Problem, judge
from tcpwin.report._text import render
from tcpwin.report._units import name_text

__all__ = ["Problem", "judge", "name_text", "render", "render_connection"]
