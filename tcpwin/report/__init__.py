"""The answer in words."""

from tcpwin.report._detail import render_connection
from tcpwin.report._problems import Problem, find_held_back, judge
from tcpwin.report._text import render
from tcpwin.report._units import name_text

__all__ = ["Problem", "find_held_back", "judge", "name_text", "render", "render_connection"]
