"""The standalone report: what limited the connections of a capture, as one self-contained file.

In: an analysis. Out: HTML that needs no network, PDF, JSON or Markdown. Its size is bounded, whatever the capture.
"""

from tcpwin.lazy import attach

__getattr__, __dir__ = attach(__name__)
