"""Receive windows, bytes in flight and zero windows of every TCP connection in a capture.

>>> import tcpwin
>>> analysis = tcpwin.analyze("capture.pcapng")
>>> for connection in analysis.worst(3):
...     print(connection)
"""

from tcpwin.lazy import attach, provide

__getattr__, __dir__ = attach(__name__)

# Functions of later stages that methods of Analysis and Connection call.
provide(
    draw="tcpwin.figures:draw",
    draw_timeline="tcpwin.figures:timeline",
    report="tcpwin.render.report:Report",
    slice="tcpwin.render:slice_packets",
    annotate="tcpwin.render:annotate",
)
