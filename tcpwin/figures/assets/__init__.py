"""Third-party files that reports embed, each with a toml of its origin, licence and hash."""

from __future__ import annotations

from importlib.resources import files

PLOTLY = "plotly-basic.min.js"
"""plotly.js reduced to lines, points and bars, which starts in a third of the time."""


def read_asset(name: str) -> bytes:
    """Read a file of this folder."""
    return files(__name__).joinpath(name).read_bytes()
