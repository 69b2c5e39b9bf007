"""The standalone report: what limited the connections of a capture, as one self-contained file.

In: an analysis. Out: HTML that needs no network, PDF, JSON or Markdown. Its size is bounded, whatever the capture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpwin.lazy import loader

if TYPE_CHECKING:
    from tcpwin.render.report.figures import typed
    from tcpwin.render.report.html_page import render_page
    from tcpwin.render.report.pair_page import render_pair_page
    from tcpwin.render.report.pdf import find_browser, print_page
    from tcpwin.render.report.report import CONNECTIONS_SHOWN, FORMS, THEMES, Note, Report, form_of
    from tcpwin.render.report.shell import require

_HOMES = {
    "figures": ("typed",),
    "html_page": ("render_page",),
    "pair_page": ("render_pair_page",),
    "pdf": (
        "find_browser",
        "print_page",
    ),
    "report": (
        "CONNECTIONS_SHOWN",
        "FORMS",
        "Note",
        "Note",
        "Report",
        "THEMES",
        "form_of",
    ),
    "shell": ("require",),
}

__all__ = [
    "CONNECTIONS_SHOWN",
    "FORMS",
    "THEMES",
    "Note",
    "Report",
    "find_browser",
    "form_of",
    "print_page",
    "render_page",
    "render_pair_page",
    "require",
    "typed",
]

__getattr__ = loader(__name__, _HOMES)
