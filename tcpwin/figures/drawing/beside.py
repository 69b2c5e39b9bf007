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
    from tcpwin.reference import Fits
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
        name, trace: the run's name, as in a request for it, and its samples over time.
        count: number of the trace's samples that are drawn.
    """

    request: Request
    name: str
    trace: RunTrace
    count: int

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
    if request.field is not None:
        name, rtt_ns, found = _named(request.field)
    else:
        name, rtt_ns, found = _nearest(request)
    request = _compared(request)
    until_ns = max(request.end_ns - request.origin_ns, LEAST_ROUND_TRIPS * rtt_ns)
    count = int(np.searchsorted(found.time_ns, until_ns, side="right"))
    return Beside(request, name, found, max(count, 2))


def library_fits(request: Request) -> tuple[Request, Fits]:
    """Return the request for the compared direction, and the lab's runs that fit.

    Raises:
        Nothing: none fits.
    """
    from tcpwin.reference import compare

    comparison = compare(request.connection)
    fits, measured = comparison.lab, comparison.measured
    if fits is None or measured is None or not fits.found:
        why = "no run of the lab fits" if fits is None or fits.why_not is None else fits.why_not.rstrip(".")
        raise Nothing(why[:1].lower() + why[1:])
    return replace(request, direction=measured.direction or request.direction), fits


def rates_of(trace: RunTrace, least_ns: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return times of a run in seconds, and its rates up to each in bits per second.

    Args:
        least_ns: minimum time over which a rate is taken.
    """
    times, acked = np.array(trace.time_ns), np.array(trace.acked_bytes)
    stride = max(1, -(-least_ns // max(int(times[0]), 1)))
    places = np.unique(np.append(np.arange(stride - 1, len(times), stride), len(times) - 1))
    times, acked = times[places], acked[places]
    return times / 1e9, np.diff(acked, prepend=0) * 8e9 / np.maximum(np.diff(times, prepend=0), 1)


def _compared(request: Request) -> Request:
    return replace(request, direction=request.connection.verdict.direction or request.direction)


def _nearest(request: Request) -> tuple[str, int, RunTrace]:
    """Return the run of the comparison: a published one or its repetition, else the library's that is most alike."""
    from tcpwin.reference import compare, trace

    comparison = compare(request.connection)
    if (run := comparison.traced) is not None and (found := trace(run)) is not None:
        return f"{run.reference}/{run.name}", run.rtt_ns or 0, found
    if comparison.lab is not None and comparison.lab.found:
        fit = comparison.lab.found[0]
        return fit.run.full_name, fit.run.rtt_ns, fit.run.trace
    why = comparison.why_not
    if why is None:
        raise Nothing("no reference near enough has a time course")
    # Lowercase, because it follows the words "Nothing to show".
    raise Nothing(why.rstrip(".").replace("No", "no", 1))


def log_if_far_apart(panel: Panel, sides: Sequence[Sequence[Trace]], axis: Mapping[str, Any]) -> None:
    """Make the vertical axis logarithmic if some side's curves would be flat on a linear one.

    Args:
        axis: the vertical axis without its range: unit and number format.
    """
    tops = [max(float(np.max(each["y"])) for each in side) for side in sides]
    if not all(tops) or max(tops) <= LOGARITHMIC * min(tops):
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


def _named(name: str) -> tuple[str, int, RunTrace]:
    from tcpwin.reference import LIBRARY, library, reference, trace

    of, _, run_name = name.partition("/")
    if of == LIBRARY:
        found = library().get(run_name)
        if found is None:
            raise ArgumentError(f"the library has no run {run_name[:80]!r}: `tcpwin reference library` lists them")
        return name, found.rtt_ns, found.trace
    try:
        run = reference(of).run(run_name)
    except KeyError:
        raise ArgumentError(f"unknown run {name[:80]!r}: write it as lab-bulk-300ms/512m2-stock") from None
    shipped = trace(run)
    if shipped is None:
        raise ArgumentError(f"{name} has no time course: only runs of the lab- references and the library have one")
    return name, run.rtt_ns or 0, shipped
