"""Typed samples of hosts' sockets, counters, memory and settings, and their join with connections."""

from tcpwin.lazy import attach

__getattr__, __dir__ = attach(__name__)
