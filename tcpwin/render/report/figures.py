"""The figures of a report as packed plotly data; the figures of one connection share a time axis.

In: a Report. Out: `Drawn` for each connection shown in full, the overview, and the colours of the dark theme.
Empty figures are omitted; the page names those that do not fit into the file.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpwin import figures
from tcpwin.analysis import DIRECTIONS, DirectionName
from tcpwin.figures.drawing import BUDGET_COLOURS, THEMES
from tcpwin.render.report.json_form import script_json
from tcpwin.render.report.table import pack

if TYPE_CHECKING:
    from tcpwin.limits import Connection
    from tcpwin.render.report.report import Report

FIGURES_BYTES = 1_500_000
"""Size limit of all figures: with plotly.js and the table, a report stays below 5 MB."""
POINTS = 600
"""Maximum points of a curve: the width of a figure in pixels on most screens."""
OPTIONS: dict[str, Any] = {"start_ns": None, "end_ns": None, "points": POINTS, "theme": "light"}
FIGURE_SHARE = 0.02
"""Share of the busier direction's data below which a direction gets no timeline."""
PRINTED_HEIGHT = 0.7
"""Height of a printed figure as a share of its height on screen: a connection in full takes two pages."""
OVERVIEW = "overview"
BESIDE = ("reference-window", "reference-throughput")
BESIDE_SUMMARY = "Receive window and bytes in flight, then throughput, on the same axes; both begin at 0."
LAB_RUNS = "reference-runs"
LAB_SUMMARY = "Rate of acknowledged data of this connection and of each run; all begin at 0."
MANY_MESSAGES = 20
"""Minimum number of messages for drawing their distribution."""


@dataclass(frozen=True, slots=True)
class FigureView:
    """A figure: its name within the page, and its text alternative."""

    name: str
    title: str
    summary: str
    height: int


@dataclass(frozen=True, slots=True)
class Drawn:
    """Figures, and their data as JSON, gzip, base64; `lacking` gives the reason for their absence."""

    figures: Sequence[FigureView] = ()
    packed: str = ""
    lacking: str = ""


@dataclass(frozen=True, slots=True)
class Colours:
    """Colours of figures: style rules for the budget bars, and a JSON map from light to dark."""

    css: str
    document: str


@cache
def colours() -> Colours:
    """Return the colours of the page's bars, and those that the dark theme replaces in figures."""
    groups = [(group.replace(" ", "-"), colour) for group, colour in BUDGET_COLOURS.items()]
    rules = [f".bar .{name}, .budget .{name} {{ background: {colour}; }}" for name, colour in groups]
    light, dark = THEMES["light"], THEMES["dark"]
    names = ("hover", "axis", "grid", "faint_text", "text", "background")
    exchanged = {getattr(light, name): getattr(dark, name) for name in names}
    return Colours(
        "\n".join(["", *rules]),
        script_json({"dark": exchanged, "darkHover": dark.hover}),
    )


def draw_overview(report: Report) -> Drawn | None:
    """Draw all connections in one figure; return None for a single connection or if there is nothing to draw."""
    if len(report.analysis) < 2 or OVERVIEW not in figures.names("analysis"):
        return None
    found = drawable(figures.plain(OVERVIEW, report.analysis, direction=None, **OPTIONS))
    if found is None:
        return None
    kind = figures.get(OVERVIEW)
    return Drawn([FigureView(OVERVIEW, kind.title, kind.summary, _height(found))], pack([found]))


def draw_connections(report: Report) -> list[Drawn]:
    """Draw the figures of each connection shown in full, up to the size limit."""
    drawn: list[Drawn] = []
    left = FIGURES_BYTES
    for view in report.connections:
        each = _draw_connection(view.connection, is_printed=report.is_printed)
        if len(each.packed) > left:
            left = 0
            each = Drawn(lacking="Its figures do not fit into this file: tcpwin plot draws them one by one.")
        left -= len(each.packed)
        drawn.append(each)
    return drawn


def draw_beside(report: Report) -> dict[int, Drawn]:
    """Draw each connection next to its nearest reference with a known time course; the keys are connection numbers."""
    drawn = {}
    for view, comparison in zip(report.connections, report.comparisons, strict=True):
        run = comparison.traced
        if run is None:
            continue
        name = f"{run.reference}/{run.name}"
        plain = figures.plain_timeline(view.connection, BESIDE, direction=None, field=name, **OPTIONS)
        found = drawable(plain)
        if found is not None:
            summary = f"{BESIDE_SUMMARY} Dashed: {name}, from samples of its sender's kernel."
            title = "This connection and the run over time"
            drawn[view.connection.id] = Drawn([FigureView(BESIDE[0], title, summary, _height(found))], pack([found]))
    return drawn


def draw_lab_runs(report: Report) -> dict[int, Drawn]:
    """Draw each connection next to the lab's runs that fit; the keys are connection numbers."""
    drawn = {}
    for view, comparison in zip(report.connections, report.comparisons, strict=True):
        if comparison.lab is None or not comparison.lab.found:
            continue
        found = drawable(figures.plain(LAB_RUNS, view.connection, direction=None, **OPTIONS))
        if found is not None:
            title = figures.get(LAB_RUNS).title
            drawn[view.connection.id] = Drawn([FigureView(LAB_RUNS, title, LAB_SUMMARY, _height(found))], pack([found]))
    return drawn


def _draw_connection(connection: Connection, *, is_printed: bool) -> Drawn:
    view, found = [], []
    for direction in _directions(connection)[: 1 if is_printed else None]:
        words = f"{direction[0]} → {direction[-1]}"
        more = () if is_printed else ("path", "time-sequence", *(("messages",) if _has_messages(connection) else ()))
        for name in ("timeline", *more):
            figure = drawable(_draw(name, connection, direction))
            if figure is None:
                continue
            kind = None if name == "timeline" else figures.get(name)
            title = f"{'Over time' if kind is None else kind.title}, {words}"
            if is_printed:
                height = round(PRINTED_HEIGHT * _height(figure))
                figure = {**figure, "layout": {**figure["layout"], "height": height}}
            view.append(FigureView(f"{name}-{direction[0]}", title, _summary(name), _height(figure)))
            found.append(figure)
    if not found:
        return Drawn(lacking="There is nothing to draw: it carried no data.")
    return Drawn(view, pack(found))


def _draw(name: str, connection: Connection, direction: DirectionName) -> Mapping[str, Any]:
    if name == "timeline":
        return figures.plain_timeline(connection, direction=direction, **OPTIONS)
    return figures.plain(name, connection, direction=direction, **OPTIONS)


def _summary(name: str) -> str:
    if name != "timeline":
        return figures.get(name).summary
    kinds = [kind.title.lower() for kind in map(figures.get, figures.names("connection")) if kind.is_in_timeline]
    return f"From top to bottom: {', '.join(kinds)}; empty figures are left out."


def _directions(connection: Connection) -> list[DirectionName]:
    """Return the directions with data, the busier first; without those that only carry requests or ACKs."""
    data: dict[DirectionName, int] = {
        name: max(direction.unique_bytes, direction.acked_bytes)
        for name, direction in zip(DIRECTIONS, (connection.a_to_b, connection.b_to_a), strict=True)
    }
    most = max(data.values())
    return [
        name for name in sorted(data, key=lambda name: -data[name]) if data[name] and data[name] >= FIGURE_SHARE * most
    ]


def _has_messages(connection: Connection) -> bool:
    return max(connection.a_to_b.messages or 0, connection.b_to_a.messages or 0) >= MANY_MESSAGES


def drawable(figure: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return a figure as plain JSON data; None if it has nothing to show."""
    if "nothing" in figure["layout"]["meta"]:
        return None
    figure = figures.gather_legends(figure)
    meta = {"legend_height": figure["layout"]["meta"].get("legend_height")}
    layout = {**figure["layout"], "meta": meta}
    return {"data": [typed(each) for each in figure["data"]], "layout": typed(layout)}


def typed(value: Any) -> Any:
    """Encode numeric arrays as plotly.js typed arrays: dtype, and bytes in base64."""
    if isinstance(value, Mapping):
        return {name: typed(each) for name, each in value.items()}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "iu" and value.dtype.itemsize > 4:
            value = value.astype(np.float64)
        if value.ndim != 1 or value.dtype.kind not in "iuf":
            return typed(value.tolist())
        content = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<"))
        return {
            "dtype": f"{value.dtype.kind}{value.dtype.itemsize}",
            "bdata": base64.b64encode(content.tobytes()).decode(),
        }
    return [typed(each) for each in value] if isinstance(value, list | tuple) else value


def _height(figure: Mapping[str, Any]) -> int:
    return int(figure["layout"]["height"])
