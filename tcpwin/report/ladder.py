"""The ladder of a paired connection: two time lines, and each packet as a line that slants from one to the other.

In: a Pairing and the number of a connection. Out: a plotly figure, with the delays of both directions under the ladder.
All times are by a's clock. Packets that were lost, late, duplicated, unknown or sent again are drawn first; of the
others as many as a browser can hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcpwin.report.drawing.compose import wrap_figure
from tcpwin.report.drawing.text import escape
from tcpwin.report.drawing.theme import COLOURS, GOLD, GREY, LOSS, MS_AXIS, PINK, VIOLET, axis, base_layout, find_theme
from tcpwin.units import count_text, short_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tcpwin.pairing import PairedConnection, Pairing

MOST_DRAWN = 4_000
"""Packets of a figure: each is a line of its own under the pointer."""
_COLUMNS = 400
"""Of the delays: the least and the most of each."""
_LOST_AT = 0.55
"""Of the way, where a lost packet ends."""
_HEIGHT = 640
_MARKS = {
    "data": ("data", COLOURS["sent"], "solid"),
    "acks": ("ACKs", COLOURS["acknowledged"], "solid"),
    "resend": ("sent again", PINK, "solid"),
    "late": ("late", GOLD, "dash"),
    "duplicated": ("duplicated", VIOLET, "dot"),
    "unknown": ("unknown", GREY, "dot"),
    "lost": ("lost", LOSS, "solid"),
}
"""Legend, colour and dash of each kind; the last are drawn over the first."""


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
        pairing: of two captures.
        connection: its number among the paired ones.
        start_ns, end_ns: only packets that left in this span, by a's clock.
        theme: ``light`` or ``dark``.

    Returns:
        A ``plotly.graph_objects.Figure``.

    Raises:
        IndexError: there is no such connection.
        ValueError: there is no such theme.
    """
    import numpy as np

    colours = find_theme(theme)
    paired = pairing.connections[connection]
    packets = _packets(pairing, paired)
    inside = np.ones(len(packets["left_ns"]), dtype=bool)
    if start_ns is not None:
        inside &= packets["left_ns"] >= start_ns
    if end_ns is not None:
        inside &= packets["left_ns"] <= end_ns
    packets = {name: values[inside] for name, values in packets.items()}
    total = len(packets["left_ns"])
    origin_ns = int(packets["left_ns"].min()) if total else 0
    drawn = _chosen(packets)
    ladder = [
        _lines(packets, drawn & (packets["kind"] == kind), kind, origin_ns)
        for kind in _MARKS
        if (drawn & (packets["kind"] == kind)).any()
    ]
    delays = [trace for index in range(2) for trace in _delays(packets, paired, index, origin_ns)]
    ends = [f"{letter}: {short_name(name)}" for letter, name in (("b", pairing.name_b), ("a", pairing.name_a))]
    note = "" if drawn.all() else f"<br>{count_text(int(drawn.sum()), 'packet')} of {total:,} drawn"
    first = paired.directions[0]
    layout = {
        **base_layout(colours),
        "height": _HEIGHT,
        "hovermode": "closest",
        "title": {"text": escape(f"{first.source} ↔ {first.target}") + note, "font": {"size": 14}, "x": 0.01},
        "margin": {"l": 12, "r": 12, "t": 60, "b": 12},
        # Below the axis: it wraps to many rows on a phone, and above would run into the title.
        "legend": {"orientation": "h", "y": -0.14, "yanchor": "top"},
        "xaxis": axis(colours, title={"text": "s since the first packet, by a's clock"}, anchor="y2"),
        "yaxis": axis(
            colours,
            domain=[0.38, 1],
            range=[-0.08, 1.08],
            tickmode="array",
            tickvals=[0, 1],
            ticktext=[escape(end) for end in ends],
            fixedrange=True,
        ),
        "yaxis2": axis(colours, domain=[0, 0.3], title={"text": "delay"}, rangemode="tozero", **MS_AXIS),
    }
    return wrap_figure({"data": [*ladder, *delays], "layout": layout})


def _packets(pairing: Pairing, paired: PairedConnection) -> dict[str, NDArray[Any]]:
    """The connection's packets in the order in which they left, with times by a's clock and the kind of their line."""
    import numpy as np

    table = pairing.packets()
    table = {name: values[table["connection"] == paired.number] for name, values in table.items()}
    in_a, in_b = table["frame_a"] > 0, table["frame_b"] > 0
    leaves_at_b = np.array([each.leaves_at == "b" for each in paired.directions])[table["direction"]]
    least = np.array([each.delay.least_ns if each.delay else 0 for each in paired.directions], dtype=np.int64)
    at_a = np.where(in_a, table["time_a_ns"], 0)
    at_b = np.where(in_b, table["time_b_ns"], 0)
    delay_ns = np.where(in_a & in_b, table["delay_ns"], least[table["direction"]])
    # Seen at b alone: by the offset of the piece in which it was, near enough for a line.
    if pairing.clock is not None:
        pieces = pairing.clock.pieces
        begins = np.array([piece.from_ns + piece.offset_ns for piece in pieces])
        index = np.maximum(np.searchsorted(begins, at_b, side="right") - 1, 0)
        at_b = at_b - np.array([piece.offset_ns for piece in pieces], dtype=np.int64)[index]
    left_ns = np.where(leaves_at_b, np.where(in_a, at_a - delay_ns, at_b), np.where(in_a, at_a, at_b - delay_ns))
    kind = np.where(table["length"] > 0, "data", "acks").astype(object)
    kind[table["is_resend"]] = "resend"
    for fate in ("late", "duplicated", "unknown", "lost"):
        kind[table["fate"] == fate] = fate
    shown = ~np.isin(table["fate"], ("captured_twice", "injected"))
    columns = {
        **{name: table[name] for name in ("direction", "frame_a", "frame_b", "seq", "length")},
        "left_ns": left_ns,
        "delay_ns": delay_ns,
        "is_measured": in_a & in_b,
        "leaves_at_b": leaves_at_b,
        "kind": kind,
    }
    order = np.argsort(left_ns[shown], kind="stable")
    return {name: values[shown][order] for name, values in columns.items()}


def _chosen(packets: dict[str, NDArray[Any]]) -> NDArray[Any]:
    """Which packets are drawn: what happened to any first, then others at even steps."""
    import numpy as np

    ordinary = np.isin(packets["kind"], ("data", "acks"))
    chosen: NDArray[Any] = np.zeros(len(ordinary), dtype=bool)
    most_odd = MOST_DRAWN // 2
    most_ordinary = MOST_DRAWN - min(most_odd, int((~ordinary).sum()))
    for wanted, most in ((~ordinary, most_odd), (ordinary, most_ordinary)):
        places = np.flatnonzero(wanted)
        step = max(1, -(-len(places) // most))
        chosen[places[::step]] = True
    return chosen


def _lines(packets: dict[str, NDArray[Any]], chosen: NDArray[Any], kind: str, origin_ns: int) -> dict[str, Any]:
    """One trace: a line for each packet, with a gap after it."""
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
    said = [
        f"a:{a or '–'} b:{b or '–'} seq {seq} len {length}"
        for a, b, seq, length in zip(
            *(part[column].tolist() for column in ("frame_a", "frame_b", "seq", "length")), strict=True
        )
    ]
    return {
        "type": "scattergl" if len(begin) > MOST_DRAWN // 4 else "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": x,
        "y": y,
        "text": [text for each in said for text in (each, each, "")],
        "hovertemplate": f"%{{x:.6f}} s  {name}<br>%{{text}}<extra></extra>",
        "line": {"color": colour, "width": 2 if kind == "lost" else 1, "dash": dash},
        "marker": {"color": colour, "size": 6, "symbol": ["circle", "x", "circle"] * len(begin)}
        if kind == "lost"
        else {"color": colour, "size": 3},
        "connectgaps": False,
        "opacity": 0.45 if kind in ("data", "acks") else 1,
    }


def _delays(
    packets: dict[str, NDArray[Any]], paired: PairedConnection, index: int, origin_ns: int
) -> list[dict[str, Any]]:
    """The most and the least delay of one direction, in columns of time."""
    import numpy as np

    mine = (packets["direction"] == index) & packets["is_measured"]
    if not mine.any():
        return []
    time_ns, delay_ns = packets["left_ns"][mine] - origin_ns, packets["delay_ns"][mine]
    width = max(int(time_ns[-1]) // _COLUMNS, 1)
    starts = np.flatnonzero(np.diff(time_ns // width, prepend=-1))
    direction = paired.directions[index]
    colour = COLOURS["sent"] if direction.leaves_at == "a" else COLOURS["acknowledged"]
    name = "delay a → b" if direction.leaves_at == "a" else "delay b → a"
    traces = []
    for reduce, dash, which in ((np.maximum, "solid", "most"), (np.minimum, "dot", "least")):
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": f"{name}, {which}",
                "x": time_ns[starts] / 1e9,
                "y": reduce.reduceat(delay_ns, starts) / 1e6,
                "yaxis": "y2",
                "line": {"color": colour, "width": 1.5, "dash": dash},
                "hovertemplate": f"%{{x:.6f}} s  {name}, {which}: %{{y:.3f}} ms<extra></extra>",
            }
        )
    return traces
