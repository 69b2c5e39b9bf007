"""What hosts said of their sockets, counters, memory and settings, as typed samples, and the join with connections."""

from tcpwin.lazy import attach

__getattr__, __dir__ = attach(__name__)
