"""Files of other projects that reports carry, each with a toml that says where it is from, its licence and its hash."""

from __future__ import annotations

from importlib.resources import files

PLOTLY = "plotly-cartesian.min.js"
"""plotly.js with the traces of two axes."""


def read_asset(name: str) -> bytes:
    """A file of this folder."""
    return files(__name__).joinpath(name).read_bytes()
