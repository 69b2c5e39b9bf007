"""The parts of every figure: panels, axes, themes, spans, export."""

from tcpwin.lazy import attach

__getattr__, __dir__ = attach(__name__)
