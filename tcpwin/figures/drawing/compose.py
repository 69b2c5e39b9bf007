"""Combine panels into a plotly figure with axes, titles and legend.

In: a request and one panel, or several that share the time axis. Out: a plotly figure. Plain dictionaries are wrapped
without plotly's validation of each property, which would cost ten times the drawing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from tcpwin.figures.drawing.text import escape
from tcpwin.figures.drawing.theme import BUDGET_COLOURS, axis, base_layout
from tcpwin.limits import LIMIT_GROUPS, LIMIT_NAMES, roles_of
from tcpwin.units import count_text, short_name

if TYPE_CHECKING:
    from tcpwin.figures.drawing.kind import FigureKind
    from tcpwin.figures.drawing.panel import Panel, Trace
    from tcpwin.figures.drawing.request import Request

HEIGHT = 140
"""Height of a title of two lines and the time axis, in pixels."""
TITLE_ROOM = 50
"""Height of a title of two lines, in pixels: longer ones make the figure higher instead of the plot flatter."""
LEGEND_ROW = 19
PANEL_HEIGHT = 220
DENSE = 0.45
"""Height of a timeline's panels below the first, as a share of their usual height."""
TITLE_ROW = 26
"""Height of a panel's title and the space above it, in pixels."""
TITLE_COLUMNS = 3
"""Columns of a legend that a panel's title takes: entries that fit next to it need no row."""
TIME_AXIS = 52
"""Height of the labels and the title of the time axis, in pixels."""
LEGEND_EDGE = 8
"""Space of a legend besides its rows, in pixels."""
LEGEND_COLUMNS = 7
"""Columns of a panel's legend on a usual screen; where they do not fit, all entries go below the figure."""
LEGEND_WIDTH = 92
"""Usual width of a legend entry's text, in pixels: two columns fit into 375."""
LEGEND_LETTERS = 15
"""Length of an entry above which it gets smaller letters, to keep two columns."""
LETTER_WIDTH = 0.565
"""Minimum width of a letter in a legend, in letter heights."""
LEGEND_GAP = 5
"""Space between an entry's text and the next entry's symbol, in pixels."""
TITLE_SIZE = 14
"""Size at which the longest title and plotly's buttons fit side by side into 375 pixels."""
BESIDE_CHARACTERS = 40
"""Characters of a timeline panel's title and the notes next to it: as many as fit into 375 pixels with the axis."""
NOTE_CHARACTERS = 58
"""Characters of a line under the title: as many as fit into 375 pixels."""


def compose(request: Request, panels: Sequence[tuple[FigureKind, Panel]]) -> dict[str, Any]:
    """Lay the panels out from top to bottom: return ``data`` and ``layout`` of a plotly figure."""
    kinds = [kind for kind, _ in panels]
    panels = [(kind, each) for kind, panel in panels for each in (panel, *panel.below)]
    is_single = len(panels) == 1
    title = _title(request, panels)
    # Lanes with labels need their height.
    weights = [panel.weight * (1 if kind.name == kinds[0].name or panel.labels else DENSE) for kind, panel in panels]
    heights = [round(PANEL_HEIGHT * weight) for weight in weights]
    counts = [len(_entries([panel])) for _, panel in panels]
    rows = [-(-each // LEGEND_COLUMNS) if each + TITLE_COLUMNS > LEGEND_COLUMNS else 0 for each in counts]
    legends = [LEGEND_ROW * count + LEGEND_EDGE if count else 0 for count in rows]
    heads = [0] if is_single else [TITLE_ROW + each for each in legends]
    if is_single:
        height = HEIGHT + heights[0] + max(title_height(title) - TITLE_ROOM, 0) + _legend_height(panels)
    else:
        height = title_height(title) + sum(heads) + sum(heights) + TIME_AXIS
    layout = {
        **base_layout(request.theme),
        "height": height,
        "hovermode": "closest",
        "hoverdistance": 24,
        "bargap": 0,
        "legend": _legend(request, panels),
        "meta": {**_meta(request, kinds), "legend_height": _legend_height(panels) if is_single else 0},
    }
    if not is_single:
        layout["meta"]["legend_columns"] = LEGEND_COLUMNS
    traces: list[Trace] = []
    annotations: list[dict[str, Any]] = []
    spans = _domains(heights, heads)
    for place, ((kind, panel), (bottom, top)) in enumerate(zip(panels, spans, strict=True)):
        under, over = _axis_name("y", 2 * place), _axis_name("y", 2 * place + 1)
        layout[_axis_key(over)] = axis(request.theme, **{"side": "left", "domain": [bottom, top], **panel.y})
        # An overlay on an axis without a trace loses its position.
        if panel.shades:
            layout[_axis_key(over)]["overlaying"] = under
            layout[_axis_key(under)] = {
                "domain": [bottom, top],
                "range": [0, 1],
                "fixedrange": True,
                "visible": False,
            }
        own = {} if is_single else {"legend": f"legend{place + 2}"}
        shown = [{**each, "yaxis": under, **own} for each in panel.shades]
        traces += _share_legend([*shown, *({**each, "yaxis": over, **own} for each in panel.traces)])
        layout.update(panel.layout)
        annotations += [_lane_label(request, over, *label) for label in panel.labels]
        if not is_single:
            annotations.append(_panel_title(request, kind, panel, top, legends[place]))
            beside = {} if rows[place] else {"x": 1, "xanchor": "right"}
            layout[f"legend{place + 2}"] = {**_legend(request, [(kind, panel)]), "y": top, "yref": "paper", **beside}
    # Curves of all panels share one horizontal axis: zooming one zooms all.
    first = panels[0][1]
    layout["xaxis"] = axis(
        request.theme,
        anchor=_axis_name("y", 2 * len(panels) - 1),
        **(dict(first.x) if first.x is not None else _time_axis(request)),
    )
    if kinds[-1].name != kinds[0].name:
        _mark_cost(request, layout, annotations)
    layout["title"] = title
    layout["margin"] = {**layout["margin"], "t": title_height(title) + heads[0]}
    if annotations:
        layout["annotations"] = [*layout.get("annotations", ()), *annotations]
    return {"data": traces, "layout": layout}


def _mark_cost(request: Request, layout: dict[str, Any], annotations: list[dict[str, Any]]) -> None:
    """Mark the time of the finding that the verdict's cost rests on, along the top of the first panel."""
    verdict = request.connection.verdict
    evidence = None if verdict.about is None else verdict.about.evidence
    if not verdict.is_problem or verdict.direction != request.direction or evidence is None:
        return
    if evidence.start_ns is None or evidence.end_ns is None:
        return
    start_ns, end_ns = max(evidence.start_ns, request.start_ns), min(evidence.end_ns, request.end_ns)
    if start_ns > end_ns:
        return
    limit = verdict.also or verdict.limit
    colour = BUDGET_COLOURS[LIMIT_GROUPS[limit]]
    first, last = request.seconds(start_ns), request.seconds(end_ns)
    line = {"color": colour, "width": 5}
    layout["shapes"] = [
        {"type": "line", "xref": "x", "yref": "paper", "x0": first, "x1": last, "y0": 1, "y1": 1, "line": line}
    ]
    annotations.append(
        {
            "text": f"when: {LIMIT_NAMES[limit]}",
            "showarrow": False,
            "xref": "x",
            "yref": "paper",
            "x": first,
            "xanchor": "left",
            "xshift": 2,
            "y": 1,
            "yanchor": "top",
            "yshift": -2,
            "bgcolor": request.theme.background,
            "font": {"size": 10, "color": request.theme.text},
        }
    )


def nothing(request: Request, kind: FigureKind | None, reason: str) -> dict[str, Any]:
    """Return a figure that explains why there is nothing to show."""
    # Commands stay on one line. Remove their no-break spaces before `escape`, which would show them as numbers.
    unbroken = re.sub(r"`[^`]*`", lambda match: match[0].replace(" ", "\u00a0"), reason)
    lines = wrap(f"Nothing to show: {unbroken}.", 42, break_on_hyphens=False)
    text = "<br>".join(escape(line.replace("\u00a0", " ")) for line in lines)
    title = _title_box(request, [f"<b>{kind.title}</b>" if kind else "<b>Timeline</b>", *_whose(request, kind)])
    layout = {
        **base_layout(request.theme),
        "height": 170 + title_height(title),
        "xaxis": {"visible": False, "fixedrange": True},
        "yaxis": {"visible": False, "fixedrange": True},
        "meta": {**_meta(request, [kind] if kind else []), "nothing": reason},
        "title": title,
        "annotations": [
            {
                "text": text,
                "showarrow": False,
                "xref": "paper",
                "yref": "paper",
                "x": 0.5,
                "y": 0.5,
                "font": {"size": 14, "color": request.theme.faint_text},
            }
        ],
    }
    return {"data": [], "layout": layout}


def gather_legends(figure: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a figure with the legends of its panels in one below it, which fits any width."""
    layout = figure["layout"]
    meta = layout.get("meta", {})
    if "legend_columns" not in meta:
        return figure
    data, seen = [], set()
    for each in figure["data"]:
        group = each["legendgroup"]
        own = {name: value for name, value in each.items() if name != "legend"}
        data.append({**own, "showlegend": each["showlegend"] and group not in seen})
        seen.add(group)
    legend_height = LEGEND_ROW * min(-(-len(seen) // 2), 16)
    return {
        "data": data,
        "layout": {
            **{name: value for name, value in layout.items() if not re.fullmatch(r"legend\d+", name)},
            "height": layout["height"] + legend_height,
            "meta": {
                **{name: value for name, value in meta.items() if name != "legend_columns"},
                "legend_height": legend_height,
            },
            "annotations": [
                {**each, "yshift": 0} if each.get("yanchor") == "bottom" and each["yref"] == "paper" else each
                for each in layout["annotations"]
            ],
        },
    }


def wrap_figure(plain: Mapping[str, Any]) -> Any:
    """Wrap plain dictionaries in a plotly figure, which may be shown in any width."""
    from plotly.graph_objects import Figure

    plain = gather_legends(plain)

    # An empty template keeps out plotly's default one, 7 kB in each figure.
    figure = Figure({**plain, "layout": {**plain["layout"], "template": {}}}, _validate=False)
    figure._validate = True
    return figure


def _legend_height(panels: Sequence[tuple[FigureKind, Panel]]) -> int:
    """Return the height for the legend in two columns, as on a phone; up to 300 pixels."""
    return LEGEND_ROW * min(-(-len(_entries([panel for _, panel in panels])) // 2), 16)


def _entries(panels: Sequence[Panel]) -> set[str]:
    """Return the legend entries of panels."""
    return {_legend_group(each) for panel in panels for each in (*panel.shades, *panel.traces)}


def _lane_label(request: Request, axis_name: str, height: float, text: str) -> dict[str, Any]:
    """Return a label over a lane; attached to the plot, so that zooming does not move it."""
    return {
        "text": text,
        "showarrow": False,
        "xref": "paper",
        "yref": axis_name,
        "x": 0,
        "xanchor": "left",
        "xshift": 3,
        "y": height,
        "yanchor": "bottom",
        "font": {"size": 10, "color": request.theme.text},
    }


def _axis_name(letter: str, place: int) -> str:
    return letter if place == 0 else f"{letter}{place + 1}"


def _axis_key(name: str) -> str:
    return f"{name[0]}axis{name[1:]}"


def _domains(heights: Sequence[int], heads: Sequence[int]) -> list[tuple[float, float]]:
    """Return bottom and top of each panel, from the first at the top, as shares of the plot's height."""
    whole = sum(heights) + sum(heads[1:])
    top, found = 1.0, []
    for height, head in zip(heights, [*heads[1:], 0], strict=True):
        bottom = top - height / whole
        found.append((max(bottom, 0.0), top))
        top = bottom - head / whole
    return found


def _time_axis(request: Request) -> dict[str, Any]:
    """Return an axis of seconds since the connection began; its title has the start time if the capture's clock is
    known.
    """
    # A float has too few digits for nanoseconds since the epoch.
    seconds, rest_ns = divmod(request.origin_ns, 1_000_000_000)
    began = datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%d %H:%M:%S")
    first, last = request.seconds(request.start_ns), request.seconds(request.end_ns)
    margin = (last - first) * 0.01 or 0.5
    return {
        "title": {
            "text": f"since {began}.{rest_ns // 1000:06d} UTC",
            "font": {"size": 12},
            "standoff": 8,
        },
        "range": [first - margin, last + margin],
        "ticksuffix": " s",
        "exponentformat": "none",
        "separatethousands": True,
        "ticks": "outside",
        "mirror": "allticks",
        "hoverformat": ".6f",
        "showspikes": True,
        "spikemode": "across",
        "spikesnap": "cursor",
        "spikethickness": 1,
        "spikedash": "dot",
        "spikecolor": request.theme.faint_text,
    }


def _legend(request: Request, panels: Sequence[tuple[FigureKind, Panel]]) -> dict[str, Any]:
    """Place the legend under the figure, where it covers nothing and takes as many rows as the width requires."""
    traces = (each for _, panel in panels for each in (*panel.shades, *panel.traces))
    longest = max((len(str(each.get("name", ""))) for each in traces if each.get("showlegend", True)), default=0)
    size = 11 if longest <= LEGEND_LETTERS else 10
    return {
        "orientation": "h",
        "x": 0,
        "xanchor": "left",
        "entrywidth": max(LEGEND_WIDTH, round(LETTER_WIDTH * size * longest) - LEGEND_GAP),
        "entrywidthmode": "pixels",
        "y": 0,
        "yanchor": "bottom",
        "yref": "container",
        "font": {"size": size, "color": request.theme.text},
        "bgcolor": "rgba(0,0,0,0)",
        "itemsizing": "constant",
        "traceorder": "normal",
    }


def _share_legend(traces: list[Trace]) -> list[Trace]:
    """Give traces that look alike in several panels one legend entry, which toggles them all."""
    seen: set[str] = set()
    shared = []
    for each in traces:
        group = _legend_group(each)
        is_first = each.get("showlegend", True) and group not in seen
        seen.add(group)
        shared.append({**each, "legendgroup": group, "showlegend": bool(is_first)})
    return shared


def _legend_group(trace: Trace) -> str:
    """Return a trace's own group, or its name with its type: one symbol cannot represent lines, marks and bars."""
    name = str(trace.get("name", ""))
    look = "" if "lines" in trace.get("mode", "") else "bar: " if trace["type"] == "bar" else "mark: "
    return str(trace.get("legendgroup", f"{look}{name}"))


def _title(request: Request, panels: Sequence[tuple[FigureKind, Panel]]) -> dict[str, Any]:
    kind, panel = panels[0]
    is_one = len({kind.name for kind, _ in panels}) == 1
    lines = [f"<b>{kind.title}</b>", *_whose(request, kind)] if is_one else ["", *_whose(request, kind)]
    notes = list(panel.notes)
    if len(panels) > 1:
        notes = [note for of, each in panels for note in each.notes if note not in _beside(of, each)[:1]]
    lines += [_wrapped(escape(note)) for note in dict.fromkeys(notes)]
    return _title_box(request, lines)


def _wrapped(text: str) -> str:
    """Wrap a sentence for a phone; without its breaks it is unchanged."""
    return "<br>".join(_lines(text))


def _lines(text: str) -> list[str]:
    return wrap(text, NOTE_CHARACTERS + 1, drop_whitespace=False, break_on_hyphens=False)


def _title_box(request: Request, lines: Sequence[str]) -> dict[str, Any]:
    """Return the title with small lines under it: each sentence is one `span`, which a wide page shows as one line."""
    return {
        "text": title_text(lines, request.theme.faint_text),
        "font": {"size": TITLE_SIZE, "color": request.theme.text},
        "x": 0,
        "xanchor": "left",
        "xref": "container",
        "y": 1,
        "yanchor": "top",
        "yref": "container",
        "pad": {"l": 12, "t": 22},
    }


def title_text(lines: Sequence[str], faint: str) -> str:
    """Return a title, which may be empty, with small faint lines under it."""
    small = (f'<span style="font-size:11px;color:{faint}">{each}</span>' for each in lines[1:])
    return "<br>".join([*lines[:1], *small] if lines[0] else small)


def title_height(title: dict[str, Any]) -> int:
    """Return the height of a title, in pixels."""
    return 30 + 20 * str(title["text"]).count("<br>")


def _whose(request: Request, kind: FigureKind | None) -> list[str]:
    """Return the lines that name the subject: the ends of the connection, or the capture."""
    if request.only is None:
        whole = f"{count_text(len(request.analysis), 'connection')} of {short_name(request.analysis.name)}"
        return ["<br>".join(escape(line) for line in _lines(whole[:200]))]
    roles = roles_of(request.connection)
    ends = {"a": escape(request.connection.a), "b": escape(request.connection.b)}
    if kind is not None and not kind.has_directions:
        whole = f"#{request.connection.id} {roles['a']} {ends['a']} and {roles['b']} {ends['b']}"
        return [_wrapped(whole)]
    sender, receiver = (f"{roles[side]} {ends[side]}" for side in (request.sender, request.receiver))
    return [_wrapped(f"#{request.connection.id} data of {sender} → {receiver}")]


def _beside(kind: FigureKind, panel: Panel) -> list[str]:
    """Return the notes of a panel that are short enough to go next to its title."""
    return [note for note in panel.notes if len(panel.heading or kind.title) + len(note) <= BESIDE_CHARACTERS]


def _panel_title(request: Request, kind: FigureKind, panel: Panel, top: float, legend_px: int) -> dict[str, Any]:
    style = f"font-size:11px;color:{request.theme.faint_text}"
    notes = "".join(f'  <span style="{style}">{escape(each)}</span>' for each in _beside(kind, panel)[:1])
    return {
        "text": f"<b>{panel.heading or kind.title}</b>{notes}",
        "showarrow": False,
        "xref": "paper",
        "yref": "paper",
        "x": 0,
        "xanchor": "left",
        "y": top,
        "yanchor": "bottom",
        "yshift": legend_px,
        "font": {"size": 12, "color": request.theme.text},
    }


def _meta(request: Request, kinds: Sequence[FigureKind]) -> dict[str, Any]:
    """Return what a page needs to draw the figure again, for another span or theme.

    ``legend_height`` is the space that the height reserves for a legend below the figure: a page that needs more, such
    as a narrow one, makes the figure higher by the difference. A figure of several panels has a legend over each; if
    its ``legend_columns`` do not fit, the page puts them all below the figure.
    """
    names = [kind.name for kind in kinds]
    if request.only is None:
        return {"figures": names}
    return {
        "figures": names,
        "connection": request.connection.id,
        "direction": request.direction,
        # As text: JSON readers keep only 53 bits of a number.
        "origin_ns": str(request.origin_ns),
        "start_ns": str(request.start_ns),
        "end_ns": str(request.end_ns),
    }
