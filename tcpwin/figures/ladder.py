"""The ladder of a paired connection: two time lines, and each packet as a slanted line from one to the other.

In: a Pairing and the number of a connection. Out: a plotly figure, with the delays of both directions under the ladder,
and flight and windows as seen by each end. All times are by a's clock. A ladder of too many packets shows
those with an event, and a sample of the others; it opens at the first loss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcpwin.figures.drawing.compose import wrap_figure
from tcpwin.figures.drawing.text import escape
from tcpwin.figures.drawing.theme import (
    BYTES_AXIS,
    COLOURS,
    GOLD,
    GREY,
    LOSS,
    MS_AXIS,
    PINK,
    RECEIVER,
    VIOLET,
    Theme,
    axis,
    base_layout,
    find_theme,
)
from tcpwin.units import count_text, short_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tcpwin.analysis import SeriesName
    from tcpwin.figures.ladder_packets import Delays, Rungs
    from tcpwin.pairing import PairedConnection, Pairing

MOST_DRAWN = 1_200
"""Maximum number of packets of a figure outside the opening view: more lines would merge into an area."""
MOST_FOCUSED = 240
"""Maximum number of packets in the opening view, where each line can be hovered separately."""
_BEFORE = 0.3
"""Number of these before the first lost packet."""
_LOST_AT = 0.55
"""Share of the path after which a lost packet's line ends."""
_HEIGHT = 720
_POINTS = 800
"""Maximum number of points of flight and windows."""
_MARKS = {
    "data": ("data", COLOURS["sent"], "solid"),
    "acks": ("ACKs", COLOURS["acknowledged"], "solid"),
    "resend": ("retransmitted", PINK, "solid"),
    "late": ("late", GOLD, "dash"),
    "duplicated": ("duplicated", VIOLET, "dot"),
    "unknown": ("unknown", GREY, "dot"),
    "lost": ("lost", LOSS, "solid"),
}
"""Legend, colour and dash of each kind; the last are drawn over the first."""
_WORST = ("lost", "unknown", "late", "duplicated", "resend")
"""Kinds at whose first packet a large ladder opens, in order of preference."""


def draw_ladder(
    pairing: Pairing,
    connection: int = 0,
    *,
    start_ns: int | None = None,
    end_ns: int | None = None,
    theme: str = "light",
) -> Any:
    """Draw a paired connection as a ladder.

    Args:
        pairing: the pairing of two captures.
        connection: its number among the paired ones.
        start_ns, end_ns: only packets in transit in this span, by a's clock.
        theme: ``light`` or ``dark``.

    Returns:
        A ``plotly.graph_objects.Figure``; `layout.meta` has first and last packet of the connection and its losses.

    Raises:
        IndexError: there is no such connection.
        ArgumentError: the theme is unknown.
    """
    from tcpwin.figures.ladder_packets import read_rungs

    colours = find_theme(theme)
    paired = pairing.connections[connection]
    rungs = read_rungs(pairing, paired, start_ns, end_ns)
    origin_ns = rungs.first_ns
    is_whole = start_ns is None and end_ns is None
    focus = _focus(rungs) if is_whole else None
    drawn = _chosen(rungs, focus)
    packets = rungs.packets
    is_dense = focus is None and int(drawn.sum()) > 2 * MOST_FOCUSED
    traces = [
        _lines(packets, drawn & (packets["kind"] == kind), kind, origin_ns, is_dense=is_dense)
        for kind in _MARKS
        if len(drawn) and (drawn & (packets["kind"] == kind)).any()
    ]
    for index, delays in enumerate(rungs.delays):
        traces += _delays(delays, paired, index, origin_ns)
    views = _views(pairing, paired, (start_ns, end_ns), origin_ns)
    shown = [
        focus[0] if focus else rungs.first_ns if start_ns is None else start_ns,
        focus[1] if focus else rungs.last_ns if end_ns is None else end_ns,
    ]
    layout = _layout(pairing, paired, colours, has_views=bool(views))
    layout["title"]["text"] += _note(rungs, int(drawn.sum()), focus, origin_ns, colours)
    layout["xaxis"]["range"] = _padded(shown, rungs, origin_ns)
    layout["meta"] = {
        "legend_height": 57,
        # As text: JSON readers keep only 53 bits of a number.
        "origin_ns": str(origin_ns),
        "life_s": (rungs.last_ns - origin_ns) / 1e9,
        "losses_s": ((rungs.losses_ns - origin_ns) / 1e9).tolist(),
    }
    return wrap_figure({"data": [*traces, *views], "layout": layout})


def _padded(shown: list[int], rungs: Rungs, origin_ns: int) -> list[float]:
    longest_ns = int(rungs.packets["delay_ns"].max()) if rungs.total else 0
    margin_ns = max((shown[1] - shown[0]) // 50, longest_ns if shown[1] >= rungs.last_ns else 0, 1_000)
    return [(shown[0] - (shown[1] - shown[0]) // 50 - origin_ns) / 1e9, (shown[1] + margin_ns - origin_ns) / 1e9]


def _focus(rungs: Rungs) -> tuple[int, int] | None:
    """Return the opening view of a large ladder, around the first packet of the worst kind; None if all fit."""
    import numpy as np

    if rungs.total <= 2 * MOST_FOCUSED:
        return None
    kinds = rungs.packets["kind"]
    at = next((int(np.argmax(kinds == kind)) for kind in _WORST if (kinds == kind).any()), 0)
    left_ns = rungs.packets["left_ns"]
    first = max(at - round(_BEFORE * MOST_FOCUSED), 0)
    last = min(first + MOST_FOCUSED, len(left_ns) - 1)
    return int(left_ns[first]), int(left_ns[last])


def _chosen(rungs: Rungs, focus: tuple[int, int] | None) -> NDArray[Any]:
    """Choose the packets to draw: all in the opening view; elsewhere those with events first, then others at even
    steps.
    """
    import numpy as np

    from tcpwin.figures.ladder_packets import ORDINARY

    if not rungs.packets:
        return np.zeros(0, dtype=bool)
    ordinary = np.isin(rungs.packets["kind"], ORDINARY)
    chosen: NDArray[Any] = np.zeros(len(ordinary), dtype=bool)
    most_odd = MOST_DRAWN // 2
    most_ordinary = MOST_DRAWN - min(most_odd, int((~ordinary).sum()))
    for wanted, most in ((~ordinary, most_odd), (ordinary, most_ordinary)):
        places = np.flatnonzero(wanted)
        step = max(1, -(-len(places) // most))
        chosen[places[::step]] = True
    if focus is not None:
        left_ns = rungs.packets["left_ns"]
        chosen |= (left_ns >= focus[0]) & (left_ns <= focus[1])
    return chosen


def _note(rungs: Rungs, drawn: int, focus: tuple[int, int] | None, origin_ns: int, colours: Theme) -> str:
    """Describe what is left out, under the title."""
    if drawn == rungs.total:
        return ""
    text = f"{drawn:,} of {count_text(rungs.total, 'packet')} drawn"
    if focus is not None:
        first, last = ((ns - origin_ns) / 1e9 for ns in focus)
        text += f"; opens at {first:.3f} to {last:.3f} s"
    return f'<br><span style="font-size:11px;color:{colours.faint_text}">{text}</span>'


def _layout(pairing: Pairing, paired: PairedConnection, colours: Theme, *, has_views: bool) -> dict[str, Any]:
    first = paired.directions[0]
    tops = (0.56, 0.30) if has_views else (0.42, 0.0)
    lines = [
        _label(f"<b>{letter}</b>  {escape(short_name(name))}", height, anchor)
        for letter, name, height, anchor in (("a", pairing.name_a, 1.03, "bottom"), ("b", pairing.name_b, -0.03, "top"))
    ]
    layout = {
        **base_layout(colours),
        "height": _HEIGHT if has_views else _HEIGHT - 140,
        "hovermode": "closest",
        "title": {
            "text": f"<b>#{paired.number}</b> {escape(f'{first.source} ↔ {first.target}')}",
            "font": {"size": 13},
            "x": 0,
            "xref": "container",
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "pad": {"l": 12, "t": 14},
        },
        "margin": {"l": 12, "r": 12, "t": 56, "b": 112},
        "annotations": lines,
        "legend": {
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 0,
            "yanchor": "bottom",
            "yref": "container",
            "entrywidth": 96,
            "entrywidthmode": "pixels",
            "font": {"size": 11},
        },
        "xaxis": axis(
            colours,
            title={"text": "since the first packet, by a's clock", "font": {"size": 12}, "standoff": 6},
            ticksuffix=" s",
            anchor="y3" if has_views else "y2",
        ),
        "yaxis": axis(
            colours,
            domain=[tops[0], 1],
            range=[-0.16, 1.16],
            tickmode="array",
            tickvals=[0, 1],
            ticktext=["b", "a"],
            fixedrange=True,
        ),
        "yaxis2": axis(
            colours,
            domain=[tops[1], tops[0] - 0.06],
            title={"text": "delay", "standoff": 6},
            rangemode="tozero",
            **MS_AXIS,
        ),
    }
    if has_views:
        layout["yaxis3"] = axis(
            colours,
            domain=[0, tops[1] - 0.06],
            title={"text": "bytes", "standoff": 6},
            rangemode="tozero",
            **BYTES_AXIS,
        )
    return layout


def _label(text: str, height: float, anchor: str) -> dict[str, Any]:
    """Return a capture's name at its time line; attached to the plot, so that zooming does not move it."""
    place = {"xref": "paper", "x": 0, "xanchor": "left", "xshift": 4, "yref": "y", "y": height, "yanchor": anchor}
    return {"text": text, "showarrow": False, "font": {"size": 11}, **place}


def _lines(
    packets: dict[str, NDArray[Any]], chosen: NDArray[Any], kind: str, origin_ns: int, *, is_dense: bool
) -> dict[str, Any]:
    """Draw one trace: a line for each packet, with a gap after it."""
    import numpy as np

    name, colour, dash = _MARKS[kind]
    part = {column: values[chosen] for column, values in packets.items()}
    share = _LOST_AT if kind == "lost" else 1.0
    begin = (part["left_ns"] - origin_ns) / 1e9
    x = np.full(3 * len(begin), np.nan)
    x[0::3], x[1::3] = begin, begin + share * part["delay_ns"] / 1e9
    y = np.full(3 * len(begin), np.nan)
    y[0::3] = np.where(part["leaves_at_b"], 0, 1)
    y[1::3] = np.where(part["leaves_at_b"], share, 1 - share)
    hover_texts = [
        f"a:{a or '–'} b:{b or '–'} seq {seq} len {length}"
        for a, b, seq, length in zip(
            *(part[column].tolist() for column in ("frame_a", "frame_b", "seq", "length")), strict=True
        )
    ]
    marker: dict[str, Any] = {"color": colour, "size": 3}
    if kind == "lost":
        marker |= {"size": [4, 9, 0] * len(begin), "symbol": ["circle", "x", "circle"] * len(begin)}
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": x,
        "y": y,
        "text": [text for each in hover_texts for text in (each, each, "")],
        "hovertemplate": f"%{{x:.6f}} s  {name}<br>%{{text}}<extra></extra>",
        "line": {"color": colour, "width": 2 if kind == "lost" else 1, "dash": dash},
        "marker": marker,
        "connectgaps": False,
        "opacity": (0.25 if is_dense else 0.6) if kind in ("data", "acks") else 1,
    }


def _delays(delays: Delays, paired: PairedConnection, index: int, origin_ns: int) -> list[dict[str, Any]]:
    """Draw the delays of one direction: a band from the minimum to the maximum of each column of time."""
    starts_ns, least_ns, most_ns = delays.columns()
    if not len(starts_ns):
        return []
    direction = paired.directions[index]
    is_from_a = direction.leaves_at == "a"
    colour = COLOURS["sent"] if is_from_a else COLOURS["acknowledged"]
    name = "delay a → b" if is_from_a else "delay b → a"
    common = {
        "type": "scatter",
        "mode": "lines",
        "x": (starts_ns - origin_ns) / 1e9,
        "yaxis": "y2",
        "legendgroup": name,
    }
    place = "%{x:.6f} s  " + name
    return [
        {
            **common,
            "name": name,
            "showlegend": False,
            "y": least_ns / 1e6,
            "line": {"color": colour, "width": 0.5},
            "hovertemplate": f"{place}, least: %{{y:.3f}} ms<extra></extra>",
        },
        {
            **common,
            "name": name,
            "y": most_ns / 1e6,
            "line": {"color": colour, "width": 1.5, "dash": "solid" if is_from_a else "dot"},
            "fill": "tonexty",
            "hovertemplate": f"{place}, most: %{{y:.3f}} ms<extra></extra>",
        },
    ]


def _views(
    pairing: Pairing, paired: PairedConnection, span_ns: tuple[int | None, int | None], origin_ns: int
) -> list[dict[str, Any]]:
    """Draw the flight of the sender with most data, and the window as sent and as received, by a's clock."""
    judged = pairing.judge(paired.number)
    if judged is None:
        return []
    main = max(paired.directions, key=lambda each: each.bytes)
    near = main.leaves_at
    far = "b" if near == "a" else "a"
    drawn = []
    curves: tuple[tuple[str, SeriesName, str, str, str], ...] = (
        (near, "flight", "in flight", COLOURS["flight"], "solid"),
        (near, "receive_window", "window, came", RECEIVER, "solid"),
        (far, "receive_window", "window, sent", RECEIVER, "dot"),
    )
    for capture, series, name, colour, dash in curves:
        connection = pairing.analyses[capture].connections[judged.ids[capture]]
        ahead_ns = 0 if capture == "a" or pairing.clock is None else pairing.clock.offset_ns
        span = [None if ns is None else ns + ahead_ns for ns in span_ns]
        view = connection.view(*span, buckets=_POINTS)
        values = view.series(series, direction=judged.directions[main.index].names[capture])
        if not len(values):
            continue
        drawn.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": name,
                "x": (values.time_ns - ahead_ns - origin_ns) / 1e9,
                "y": values.last,
                "yaxis": "y3",
                "line": {"color": colour, "width": 1.5, "dash": dash, "shape": "hv"},
                "hovertemplate": f"%{{x:.6f}} s  {name}: %{{y:.4s}}B<extra></extra>",
            }
        )
    return drawn
