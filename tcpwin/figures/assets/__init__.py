"""Scripts that pages embed; third-party ones each with a toml of its origin, licence and hash."""

from __future__ import annotations

from importlib.resources import files

PLOTLY = "plotly-basic.min.js"
"""plotly.js reduced to lines, points and bars, which starts in a third of the time."""
TICKS = "ticks.js"
"""Ticks of its axes, for `followTicks(figure)`."""


def read_asset(name: str) -> bytes:
    """Read a file of this folder."""
    return files(__name__).joinpath(name).read_bytes()


def read_plotly() -> bytes:
    """Read plotly.js with the script that writes its ticks."""
    return read_asset(PLOTLY) + b"\n" + read_asset(TICKS)
