"""Models of the hosts' TCP: what memory allows which window, what a path needs, what defaults reach.

They are written from the kernel's source and the RFCs; nothing here reads a live host.
"""

from tcpwin.lazy import attach

__getattr__, __dir__ = attach(__name__)
