"""The measurements of a capture as types: captures, connections, directions, events and series."""

from tcpwin.lazy import attach

__getattr__, __dir__ = attach(__name__)
