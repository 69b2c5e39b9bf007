"""Events as markers that show frame, event and rule on hover.

In: events and the height of each. Out: traces. Excess events are thinned to as many as can be distinguished.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpwin import _engine
from tcpwin.analysis import Event
from tcpwin.figures.event_names import CAUSE_WORDS, event_words
from tcpwin.units import time_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tcpwin.figures.drawing.panel import Trace
    from tcpwin.figures.drawing.request import Request


_LINKED = ("original_frame", "age_ns", "trigger_frame")
"""Evidence with special wording in hover texts; the rest uses its heading."""


def event_text(event: Event) -> str:
    """Return frame, event, and the rule that decided, if any."""
    lines = [f"<b>frame {event.frame:,}</b>"]
    if event.cause is None:
        return f"{lines[0]}: {', '.join(map(event_words, event.names))}"
    lines[0] += f": {CAUSE_WORDS.get(event.cause, event.cause.replace('_', ' '))}"
    if event.reason:
        lines.append(f"{event.reason} ({event.confidence})")
    links = []
    if event.original_frame:
        links.append(f"sent before in frame {event.original_frame:,}")
    if event.age_ns is not None:
        links.append(f"{time_text(event.age_ns)} before")
    if event.trigger_frame:
        links.append(f"triggered by frame {event.trigger_frame:,}")
    for name, heading, kind in _engine.EVENT_EVIDENCE:
        value = getattr(event, name)
        if value is not None and name not in _LINKED:
            links.append(f"{heading} {value:,}" if kind == "frame" else f"{heading} {time_text(value)}")
    if links:
        lines.append(", ".join(links))
    return "<br>".join(lines)


def markers(
    request: Request,
    places: NDArray[np.intp],
    heights: NDArray[Any],
    name: str,
    colour: str,
    symbol: str,
    *,
    height_format: str = "%{y:.4s}B",
    most: int | None = None,
    notes: list[str] | None = None,
    **more: Any,
) -> list[Trace]:
    """Draw the events as one trace; return nothing if there are none.

    Args:
        places: indices of the events in the request's, shape (n,).
        heights: height of each event, shape (n,).
        most: maximum number of events drawn, evenly chosen; the request's number of marks if None.
        notes: gets a sentence if some are left out.
    """
    if not len(places):
        return []
    chosen = np.arange(len(places))
    most = request.marks if most is None else most
    if len(places) > most:
        from tsdownsample import EveryNthDownsampler

        chosen = EveryNthDownsampler().downsample(heights, n_out=most)
        if notes is not None:
            notes.append(f"{name}: {len(chosen):,} of {len(places):,} drawn")
    drawn = places[chosen]
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": name,
            "x": request.seconds(request.events.time_ns[drawn]),
            "y": np.asarray(heights)[chosen],
            "text": [event_text(each) for each in request.events.at(drawn.tolist())],
            "hovertemplate": f"%{{text}}<br>%{{x:.6f}} s, {height_format}<extra></extra>",
            "marker": {
                "color": colour,
                "symbol": symbol,
                "size": 8,
                "line": {"color": request.theme.background, "width": 0.5},
            },
            "cliponaxis": False,
            **more,
        }
    ]
