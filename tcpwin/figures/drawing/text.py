"""Texts of captures and snapshots for plotly, escaped so that any markup in them shows as text."""

from __future__ import annotations

from tcpwin.units import name_text

_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
MAX_CHARACTERS = 120


def short(text: object, width: int = 16) -> str:
    """Cut a text to the length that fits into the legend."""
    shown = str(text)
    return escape(shown if len(shown) <= width else shown[: width - 1] + "…")


def escape(text: object) -> str:
    """Escape a text for a label or a hover box: one line, without markup, at most 120 characters.

    Plotly renders a subset of HTML (links among it) in every label, and fills ``%{...}`` in templates.
    """
    shown = name_text(str(text))
    if len(shown) > MAX_CHARACTERS:
        shown = shown[: MAX_CHARACTERS - 1] + "…"
    return shown.translate(_ENTITIES).replace("%{", "%\u200b{")
