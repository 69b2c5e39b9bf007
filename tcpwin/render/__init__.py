"""Analyses as text, documents and files for other programs: all outputs except figures."""

from tcpwin.lazy import attach

__getattr__, __dir__ = attach(__name__)
