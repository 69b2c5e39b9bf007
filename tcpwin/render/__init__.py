"""Analyses as text, documents and files for other programs: every output but the figures.

Names are loaded on first use.
"""

from tcpwin.lazy import attach

__getattr__, __dir__ = attach(__name__)
