"""Spans of time as shaded bars under the curves: closed windows, stalls, pauses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import nlargest
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from tcpwin.analysis import Stall, ZeroWindowEpisode
from tcpwin.report._units import time_text
from tcpwin.report.figures._theme import COLOURS, GREY

if TYPE_CHECKING:
    from tcpwin.report.figures._panel import Trace
    from tcpwin.report.figures._request import Request

SpanT = TypeVar("SpanT", Stall, ZeroWindowEpisode)

MAX_SPANS = 150
"""The longest are drawn."""
GOLDEN = (5**0.5 - 1) / 2
PAUSES = ("application", "idle", "response")
"""Causes of silences in which a sender had nothing to send."""


def shade(
    request: Request,
    spans: Sequence[SpanT],
    name: str,
    colour: str,
    tell: Callable[[SpanT], str],
    *,
    pattern: str = "",
    opacity: float = 0.22,
) -> list[Trace]:
    """Bars over the whole height, each with what is to be told of it; of too many, the longest."""
    chosen = [each for each in spans if each.end_ns >= request.start_ns and each.start_ns <= request.end_ns]
    left_out = len(chosen) - MAX_SPANS
    if left_out > 0:
        # Of as many that are equally long, those that the golden ratio spreads over the axis, not the first.
        spread = [(each.duration_ns, place * GOLDEN % 1) for place, each in enumerate(chosen)]
        longest = nlargest(MAX_SPANS, range(len(chosen)), key=spread.__getitem__)
        chosen = [chosen[place] for place in sorted(longest)]
    if not chosen:
        return []
    starts = np.array([max(each.start_ns, request.start_ns) for each in chosen])
    ends = np.array([min(each.end_ns, request.end_ns) for each in chosen])
    told = f"<br>one of the {MAX_SPANS} longest of {left_out + MAX_SPANS:,}" if left_out > 0 else ""
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
            "customdata": [tell(each) for each in chosen],
            "hovertemplate": "%{customdata}" + told + "<extra>" + name + "</extra>",
        }
    ]


def zero_windows(request: Request) -> list[Trace]:
    """When the receiver's window was closed."""
    episodes = request.facts.zero_window_episodes
    return shade(request, episodes, "window closed", COLOURS["zero window"], _closed_text)


def stalls(request: Request) -> list[Trace]:
    """When nothing came though somebody waited, and when nobody had anything to send."""
    waited = [each for each in request.stalls if each.cause not in PAUSES]
    paused = [each for each in request.stalls if each.cause in PAUSES]
    return [
        *shade(request, waited, "stall", COLOURS["stall"], _stall_text, pattern="/"),
        *shade(request, paused, "pause", GREY, _stall_text, pattern=".", opacity=0.12),
    ]


def _closed_text(episode: ZeroWindowEpisode) -> str:
    probes = f", {episode.probes} probes" if episode.probes else ""
    if not episode.end_frame:
        return f"closed for {time_text(episode.duration_ns)} from frame {episode.start_frame}, to the end{probes}"
    ended = episode.ended_by.replace("_", " ")
    return (
        f"closed for {time_text(episode.duration_ns)}, frames {episode.start_frame} to {episode.end_frame}"
        f"{probes}, ended by {ended}"
    )


def _stall_text(stall: Stall) -> str:
    return (
        f"silent for {time_text(stall.duration_ns)}, frames {stall.before_frame} to {stall.after_frame}: "
        f"{stall.cause.replace('_', ' ')} ({stall.sender})"
    )
