"""Files of other projects that reports carry, each with a toml that says where it is from, its licence and its hash."""

from __future__ import annotations

from importlib.resources import files

PLOTLY = "plotly-basic.min.js"
"""plotly.js with lines, points and bars, and no other traces: a browser runs it in a third of the time."""


def read_asset(name: str) -> bytes:
    """A file of this folder."""
    return files(__name__).joinpath(name).read_bytes()
