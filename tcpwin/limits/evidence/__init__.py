"""Evidence for findings: questions that several rules ask about the same packets, settings and samples."""

from tcpwin.lazy import attach

__getattr__, __dir__ = attach(__name__)
