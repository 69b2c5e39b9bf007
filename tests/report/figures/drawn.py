"""Figures for tests: cached analyses, traces by name, seconds of the axis."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from plotly.graph_objects import Figure

import tcpwin
from tcpwin import figures

CAPTURES = Path(__file__).parents[3] / "captures"
LOSS = CAPTURES / "lab" / "loss-1-percent.pcap.gz"
SLOW_READER = CAPTURES / "lab" / "slow-reader.pcap.gz"
STALL = CAPTURES / "lab" / "zero-window-stall.pcap.gz"
IDLE_RESTART = CAPTURES / "lab" / "idle-restart.pcap.gz"
MANY_SHORT = CAPTURES / "wild" / "many-short.pcap.gz"
BUNDLE = CAPTURES / "bundles" / "slow-reader.zip"
NAMES = figures.names()
OF_CONNECTION = figures.names("connection")


@lru_cache(maxsize=8)
def analyzed(path: Path) -> tcpwin.Analysis:
    return tcpwin.analyze(path)


def connection(path: Path, number: int = 0) -> Any:
    return analyzed(path).connections[number]


def drawn(name: str, path: Path, **options: Any) -> Figure:
    """Draw a figure of a capture or of its first connection, by the figure's scope."""
    subject = analyzed(path) if figures.get(name).scope == "analysis" else connection(path)
    return figures.draw(name, subject, **options)


def zoomed(name: str, path: Path, first: float, last: float, **options: Any) -> Figure:
    """Draw the same for a span, in seconds since the connection's start."""
    of = connection(path)
    span = {"start_ns": of.start_ns + round(first * 1e9), "end_ns": of.start_ns + round(last * 1e9)}
    return figures.draw(name, of, **span, **options)


def named(figure: Figure, name: str) -> list[Any]:
    """Return all traces with a name."""
    return [each for each in figure.data if each.name == name]


def trace(figure: Figure, name: str) -> Any:
    """Return the only trace with a name and a legend entry."""
    (found,) = (each for each in named(figure, name) if each.showlegend)
    return found


def places(of: Any) -> list[tuple[float, float]]:
    """Return the points of a trace, in seconds and the trace's unit."""
    return [(round(float(x), 6), float(y)) for x, y in zip(of.x, of.y, strict=True)]


def frames_told(of: Any) -> list[int]:
    """Return the frames at the beginning of markers' texts."""
    return [int(text.partition("</b>")[0].removeprefix("<b>frame ").replace(",", "")) for text in of.text]


def value_at(of: Any, seconds: float) -> float:
    """Return the value of a step curve at a time."""
    place = int(np.searchsorted(np.asarray(of.x), seconds, side="right")) - 1
    return float(of.y[place])


def nothing(figure: Figure) -> str | None:
    """Return the reason why a figure is empty."""
    reason = figure.layout.meta.get("nothing")
    return None if reason is None else str(reason)


def is_valid(figure: Figure) -> bool:
    """Return whether plotly accepts every property, which drawing does not check."""
    Figure(figure.to_dict())
    return True
