"""Time spans as shaded bars under the curves: closed windows, stalls, pauses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from tcpwin.figures.drawing.theme import COLOURS, GREY
from tcpwin.limits import roles_of
from tcpwin.units import count_text, time_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tcpwin.analysis import Stall, ZeroWindowEpisode
    from tcpwin.figures.drawing.panel import Trace
    from tcpwin.figures.drawing.request import Request

GOLDEN = (5**0.5 - 1) / 2
PAUSES = ("application", "idle", "response")
"""Causes of silences in which a sender had nothing to send."""


def shade(
    request: Request,
    start_ns: NDArray[np.int64],
    end_ns: NDArray[np.int64],
    name: str,
    colour: str,
    hover_texts: Callable[[list[int]], list[str]],
    *,
    pattern: str = "",
    opacity: float = 0.22,
) -> list[Trace]:
    """Draw bars over the whole height; if there are too many, the longest.

    Args:
        start_ns, end_ns: bounds of each span, shape (n,).
        hover_texts: returns the hover texts of the spans at these indices.
    """
    chosen = np.flatnonzero((end_ns >= request.start_ns) & (start_ns <= request.end_ns))
    left_out = len(chosen) - request.marks
    if left_out > 0:
        chosen = chosen[_longest(end_ns[chosen] - start_ns[chosen], request.marks)]
    if not len(chosen):
        return []
    starts = np.maximum(start_ns[chosen], request.start_ns)
    ends = np.minimum(end_ns[chosen], request.end_ns)
    note = f"<br>among the {request.marks} longest of {left_out + request.marks:,}" if left_out > 0 else ""
    return [
        {
            "type": "bar",
            "name": name,
            "x": request.seconds(starts),
            "width": ((ends - starts) / 1e9),
            "y": np.ones(len(chosen), dtype=np.int8),
            "offset": 0,
            "marker": {
                "color": colour,
                "opacity": opacity,
                "line": {"color": colour, "width": 1},
                **({"pattern": {"shape": pattern, "size": 6, "solidity": 0.3}} if pattern else {}),
            },
            "customdata": hover_texts(chosen.tolist()),
            "hovertemplate": "%{customdata}" + note + "<extra>" + name + "</extra>",
        }
    ]


def _longest(duration_ns: NDArray[np.int64], most: int) -> NDArray[np.intp]:
    """Return the indices of the longest, in order, at most this many.

    Among equally long ones, choose those that the golden ratio spreads over the axis, not the first.
    """
    least_ns = np.partition(duration_ns, -most)[-most]
    places = np.flatnonzero(duration_ns >= least_ns)
    order = np.lexsort((places * GOLDEN % 1, duration_ns[places]))
    return np.sort(places[order[-most:]])


def zero_windows(request: Request) -> list[Trace]:
    """Shade the times when the receiver's window was closed."""
    closed = request.view.zero_window_columns(direction=request.direction)

    def hover_texts(places: list[int]) -> list[str]:
        return [_closed_text(each) for each in closed.at(places)]

    return shade(request, closed.start_ns, closed.end_ns, "window closed", COLOURS["zero window"], hover_texts)


def stalls(request: Request) -> list[Trace]:
    """Shade the silences: those in which a side waited, and those without anything to send."""
    silences = request.stalls
    is_pause = silences.caused_by(*PAUSES)
    roles = roles_of(request.connection)

    def shaded(chosen: NDArray[np.bool_], name: str, colour: str, pattern: str, opacity: float) -> list[Trace]:
        places = np.flatnonzero(chosen)
        start_ns, end_ns = silences.start_ns[places], silences.end_ns[places]

        def hover_texts(shown: list[int]) -> list[str]:
            return [_stall_text(each, roles) for each in silences.at(places[shown].tolist())]

        return shade(request, start_ns, end_ns, name, colour, hover_texts, pattern=pattern, opacity=opacity)

    return [
        *shaded(~is_pause, "stall", COLOURS["stall"], "/", 0.22),
        *shaded(is_pause, "pause", GREY, ".", 0.12),
    ]


def _closed_text(episode: ZeroWindowEpisode) -> str:
    probes = f", {count_text(episode.probes, 'probe')}" if episode.probes else ""
    if not episode.end_frame:
        return f"closed for {time_text(episode.duration_ns)} from frame {episode.start_frame}, to the end{probes}"
    ended = episode.ended_by.replace("_", " ")
    return (
        f"closed for {time_text(episode.duration_ns)}, frames {episode.start_frame} to {episode.end_frame}"
        f"{probes}, ended by {ended}"
    )


def _stall_text(stall: Stall, roles: Mapping[str, str]) -> str:
    return (
        f"silent for {time_text(stall.duration_ns)}, frames {stall.before_frame} to {stall.after_frame}: "
        f"{stall.cause.replace('_', ' ')} ({roles[stall.sender]})"
    )
