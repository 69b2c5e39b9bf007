"""What Wireshark shows of an analysis: an index of packets beside the capture, and the plugin that reads it."""

from tcpwin.lazy import attach

__getattr__, __dir__ = attach(__name__)
