"""Typed measurements of a capture: connections, directions, events and series."""

from tcpwin.lazy import attach

__getattr__, __dir__ = attach(__name__)
