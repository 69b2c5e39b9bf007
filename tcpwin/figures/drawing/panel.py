"""A figure before it is laid out: its curves, shaded spans and axes, as plain dictionaries that plotly.js takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Trace = dict[str, Any]


@dataclass(slots=True)
class Panel:
    """The content of one pair of axes.

    Attributes:
        y: the vertical axis: title, unit, range.
        traces: curves and markers.
        shades: time spans as bars of full height under the curves.
        x: the horizontal axis; None is time in seconds since the connection began.
        layout: further layout properties, such as ``barmode``.
        notes: sentences shown under the title.
        labels: texts on the left of the plot, each with its height on the vertical axis.
        weight: its share of the height of a timeline, usually 1.
        heading: above the panel if it is not the only one; the figure's title if empty.
        below: panels of the same figure under it, on the same time axis.
    """

    y: Mapping[str, Any]
    traces: list[Trace] = field(default_factory=list)
    shades: list[Trace] = field(default_factory=list)
    x: Mapping[str, Any] | None = None
    layout: Mapping[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    labels: list[tuple[float, str]] = field(default_factory=list)
    weight: float = 1.0
    heading: str = ""
    below: list[Panel] = field(default_factory=list)
