"""Receive windows, bytes in flight and zero windows of every TCP connection in a capture.

>>> import tcpwin
>>> analysis = tcpwin.analyze("capture.pcapng")
>>> for connection in analysis.worst(3):
...     print(connection)
"""

from tcpwin.lazy import attach

__getattr__, __dir__ = attach(__name__)
