"""Analyses as text, documents and files for other programs: every surface but the figures.

Names are loaded on first use.
"""

from tcpwin.lazy import attach

__getattr__, __dir__ = attach(__name__)
