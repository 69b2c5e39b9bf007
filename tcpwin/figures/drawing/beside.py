"""A connection and a reference run in one figure: the choice of the run, and its curves on the connection's axis.

In: a request. Out: the request for the compared direction, the run and its trace; curves. Both begin at 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpwin.errors import ArgumentError
from tcpwin.figures.drawing.curve import compact
from tcpwin.figures.drawing.kind import Nothing
from tcpwin.figures.drawing.theme import log_axis

if TYPE_CHECKING:
    from tcpwin.figures.drawing.panel import Panel, Trace
    from tcpwin.figures.drawing.request import Request
    from tcpwin.reference import Run
    from tcpwin.reference import Trace as RunTrace

LEAST_ROUND_TRIPS = 20
"""Minimum drawn length of the run, so that its start is visible for a short connection."""
LOGARITHMIC = 10
"""Ratio of the two sides' maxima above which the axis is logarithmic."""
DASH = "dash"
"""Dash of the run's curves."""


@dataclass(frozen=True)
class Beside:
    """The two sides of the figure.

    Attributes:
        request: the request for the compared direction of the connection.
        run, trace: the run, and its samples over time.
        count: number of the trace's samples that are drawn.
    """

    request: Request
    run: Run
    trace: RunTrace
    count: int

    @property
    def name(self) -> str:
        """Name of the run, as in a request for it."""
        return f"{self.run.reference}/{self.run.name}"

    @property
    def x(self) -> dict[str, Any]:
        """The time axis: the connection's span, extended if the run is drawn further."""
        first, last = self.request.seconds(self.request.start_ns), self.request.seconds(self.request.end_ns)
        if not self.request.is_zoomed:
            last = max(last, self.trace.time_ns[self.count - 1] / 1e9)
        margin = (last - first) * 0.01 or 0.5
        return {
            "title": {"text": "since each began", "font": {"size": 12}, "standoff": 8},
            "ticksuffix": " s",
            "range": [first - margin, last + margin],
            "hoverformat": ".6f",
        }

    def curve(self, values: Sequence[float], name: str, colour: str, *, unit: str, shape: str = "linear") -> Trace:
        """Draw one of the trace's columns, with a mark at each sample."""
        times = np.array(self.trace.time_ns[: self.count], dtype=np.float64) / 1e9
        return {
            "type": "scatter",
            "mode": "lines+markers",
            "name": name,
            "x": times.astype(np.float32),
            "y": compact(np.array(values[: self.count])),
            "line": {"color": colour, "dash": DASH, "width": 1.5, "shape": shape},
            "marker": {"color": colour, "size": 4, "symbol": "circle-open"},
            "hovertemplate": f"%{{y:.4s}}{unit} at %{{x:.3f}} s<extra>{name}, {self.name}</extra>",
        }


def find_beside(request: Request) -> Beside:
    """Find the run given by name, or otherwise the one that the comparison names.

    Raises:
        Nothing: no reference is near enough, or none of them has a time course.
        ArgumentError: the run is unknown, or has no time course.
    """
    from tcpwin.reference import compare, trace

    if request.field is not None:
        run = _named(request.field)
        found = trace(run)
        if found is None:
            raise ArgumentError(f"{request.field} has no time course: only runs of the lab- references have one")
    else:
        comparison = compare(request.connection)
        if comparison.why_not is not None:
            # Lowercase, because it follows the words "Nothing to show".
            raise Nothing(comparison.why_not.rstrip(".").replace("No", "no", 1))
        if comparison.traced is None:
            raise Nothing("no reference near enough has a time course")
        run, found = comparison.traced, trace(comparison.traced)
        assert found is not None
    request = replace(request, direction=request.connection.verdict.direction or request.direction)
    until_ns = max(request.end_ns - request.origin_ns, LEAST_ROUND_TRIPS * (run.rtt_ns or 0))
    count = int(np.searchsorted(found.time_ns, until_ns, side="right"))
    return Beside(request, run, found, max(count, 2))


def show_both(panel: Panel, yours: list[Trace], theirs: list[Trace], axis: Mapping[str, Any]) -> None:
    """Make the vertical axis logarithmic if one side's curves would be flat on a linear one.

    Args:
        axis: the vertical axis without its range: unit and number format.
    """
    mine, run = (max(float(np.max(each["y"])) for each in side) for side in (yours, theirs))
    if not mine or not run or 1 / LOGARITHMIC <= mine / run <= LOGARITHMIC:
        return
    every = np.concatenate([np.asarray(each["y"], dtype=np.float64) for each in panel.traces])
    least = float(every[every > 0].min())
    for each in panel.traces:
        values = np.asarray(each["y"])
        if (values <= 0).any():
            # Hover boxes show the value, not its place on the axis.
            each |= {"customdata": values, "hovertemplate": each["hovertemplate"].replace("%{y", "%{customdata")}
            each["y"] = np.where(values > 0, values, least / 2).astype(np.float64)
    panel.y = {**axis, **log_axis(least, float(every.max()), below=2, above=2)}
    if (every <= 0).any():
        panel.notes.append("The axis is logarithmic: 0 is at its lower edge")


def _named(name: str) -> Run:
    from tcpwin.reference import reference

    of, _, run = name.partition("/")
    try:
        return reference(of).run(run)
    except KeyError:
        raise ArgumentError(f"unknown run {name[:80]!r}: write it as lab-bulk-300ms/512m2-stock") from None
