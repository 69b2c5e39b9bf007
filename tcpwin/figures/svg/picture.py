"""A figure drawn as SVG: panels with their axes, bars, curves and marks, titles above, the legend below."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape, unescape
from typing import Any

import numpy as np

from tcpwin.errors import ArgumentError
from tcpwin.figures.drawing.compose import gather_legends
from tcpwin.figures.svg.marks import DASHES, pattern_tile, symbol
from tcpwin.figures.svg.scale import Scale, Values, as_numbers, span_of
from tcpwin.figures.svg.writer import element, number

LEAST_WIDTH = 240
"""Minimum width of a picture: a narrower one has no room for its axes."""
LETTER = 0.56
"""Average width of a letter, in letter heights, for common sans-serif fonts."""
WIDE = 640
"""Width from which a sentence fits on one line."""
BOLD_LETTER = 0.66
TICK_PX, LABEL_PX, LEGEND_PX = 11, 12, 11
OWN_LEGENDS = 1100
"""Width from which the legends of several panels fit over each."""
RIGHT_PX, GAP_PX, ROW_PX, SIGN_PX = 14, 6, 19, 24
X_TICK_PX, Y_TICK_PX = 80, 42
"""Minimum distance between ticks."""
_PART = re.compile(r"<(b|span)\b.*?</\1>|[^<]+")
_SPAN = re.compile(r"(<span[^>]*>)(.*?)</span>")
_TAG = re.compile(r"<[^>]*>")
_COLOUR = re.compile(r"color:\s*(#[0-9a-fA-F]{3,8})")


def draw_still(figure: Mapping[str, Any], *, width: int) -> str:
    """Draw a figure of this width, as high as its layout says, with all that its legend shows at first.

    Raises:
        ArgumentError: the width leaves no room.
    """
    if width < LEAST_WIDTH:
        raise ArgumentError(f"a picture is at least {LEAST_WIDTH} pixels wide")
    if width < OWN_LEGENDS:
        figure = gather_legends(figure)
    return _Picture(figure["layout"], [_Trace.of(each) for each in figure["data"]], width).draw()


@dataclass(slots=True)
class _Trace:
    """One visible trace, with its numbers decoded."""

    given: Mapping[str, Any]
    x: Sequence[Any]
    y: Values
    base: Values | None
    widths: Values | None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> _Trace:
        y = as_numbers(_decoded(given["y"]))
        base, widths = (None if name not in given else _as_many(_decoded(given[name]), y) for name in ("base", "width"))
        return cls(given, _decoded(given["x"]), y, base, widths)

    @property
    def axis(self) -> str:
        return str(self.given.get("yaxis", "y"))

    @property
    def is_shown(self) -> bool:
        return self.given.get("visible", True) is True

    @property
    def is_bar(self) -> bool:
        return bool(self.given["type"] == "bar")

    @property
    def heights(self) -> list[Values]:
        """The values that its vertical axis must include."""
        if self.is_bar:
            return [self.y + self.base, self.base] if self.base is not None else [self.y, np.zeros(1)]
        return [self.y]


@dataclass(slots=True)
class _Picture:
    layout: Mapping[str, Any]
    traces: list[_Trace]
    width: int
    defs: list[str] = field(default_factory=list)
    drawn: list[str] = field(default_factory=list)
    ids: dict[tuple[Any, ...], str] = field(default_factory=dict)

    def draw(self) -> str:
        layout = self.layout
        self.traces = [each for each in self.traces if each.is_shown]
        top = int(layout["margin"]["t"])
        legends = self._legends()
        rows = -(-len(legends.get("legend", ())) // self._columns(legends.get("legend", ())))
        legend_px = rows * ROW_PX + GAP_PX if rows else 0
        height = int(layout["height"])
        x_axis = layout.get("xaxis", {})
        lines_below = max((str(each).count("<br>") + 1 for each in self._names() or [""]), default=1)
        has_axes = x_axis.get("visible", True)
        below = legend_px + (ROW_PX * (lines_below + 1) if has_axes else 0) + GAP_PX
        y_names = [name for name in _axis_names(layout) if layout[_key(name)].get("visible", True)]
        bottom = max(height - below, top + 1)
        ranges = {name: self._range_of(name) for name in _axis_names(layout)}
        scales = {name: self._y_scale(name, ranges, top, bottom) for name in _axis_names(layout)}
        ticks = {
            name: scales[name].ticks(round(abs(scales[name].start - scales[name].end) / Y_TICK_PX)) for name in y_names
        }
        widest = max((len(text) for each in ticks.values() for _, text in each), default=0)
        has_title = any(_text_of(layout[_key(name)]) for name in y_names)
        left = round(widest * LETTER * TICK_PX) + (GAP_PX + 8 if y_names else 12) + (LABEL_PX + 6 if has_title else 0)
        x_scale = self._x_scale(left, self.width - RIGHT_PX)
        self._title()
        for name in y_names:
            self._panel(scales[name], ticks[name], x_scale)
        if has_axes:
            self._x_labels(x_scale, bottom)
        for each in self.traces:
            self._trace(each, x_scale, scales[each.axis])
        for line in layout.get("shapes", ()):
            ends = (x_scale.at(float(line[name])) for name in ("x0", "x1"))
            start, end = (min(max(each, x_scale.start), x_scale.end) for each in ends)
            path = f"M{number(start)} {top}H{number(end)}"
            self.drawn.append(element("path", d=path, stroke=line["line"]["color"], stroke_width=line["line"]["width"]))
        for note in layout.get("annotations", ()):
            self._annotation(note, x_scale, scales, (top, bottom))
        for name, entries in legends.items():
            if name == "legend":
                self._legend(entries, 12, height - GAP_PX - 4)
                continue
            own, begin = layout[name], x_scale.start
            if own["xanchor"] == "right":
                begin = x_scale.end - len(entries) * self._column_px(entries)
            self._legend(entries, begin, bottom - float(own["y"]) * (bottom - top) - 6)
        ground = layout["paper_bgcolor"]
        return element(
            "svg",
            element("defs", *self.defs, ""),
            element("rect", width="100%", height="100%", fill=ground),
            *self.drawn,
            xmlns="http://www.w3.org/2000/svg",
            width=self.width,
            height=height,
            viewBox=f"0 0 {self.width} {height}",
            font_family=layout["font"]["family"],
            fill=layout["font"]["color"],
        )

    # Axes

    def _names(self) -> list[str]:
        """Return the categories of the horizontal axis, in order of appearance."""
        if self.layout.get("xaxis", {}).get("type") != "category":
            return []
        return list(dict.fromkeys(str(name) for each in self.traces for name in each.x))

    def _range_of(self, name: str) -> tuple[float, float]:
        axis = self.layout[_key(name)]
        return span_of(axis, [values for each in self.traces if each.axis == name for values in each.heights])

    def _y_scale(self, name: str, ranges: Mapping[str, tuple[float, float]], top: int, bottom: int) -> Scale:
        axis = self.layout[_key(name)]
        # Matching axes share one range, which includes everything they show.
        alike = [each for each in ranges if {name, self._matched(name)} & {each, self._matched(each)}]
        least, most = min(ranges[each][0] for each in alike), max(ranges[each][1] for each in alike)
        low, high = axis.get("domain", (0, 1))
        return Scale(axis, least, most, bottom - low * (bottom - top), bottom - high * (bottom - top))

    def _matched(self, name: str) -> str:
        return str(self.layout[_key(name)].get("matches", name))

    def _x_scale(self, left: int, right: int) -> Scale:
        axis, names = self.layout.get("xaxis", {}), self._names()
        values = [as_numbers(each.x) for each in self.traces] if not names else []
        ends = [
            as_numbers(each.x) + each.widths
            for each in self.traces
            if not names and each.is_bar and each.widths is not None
        ]
        return Scale(axis, *span_of(axis, [*values, *ends], count=len(names)), left, right, names)

    def _panel(self, scale: Scale, ticks: list[tuple[float, str]], x_scale: Scale) -> None:
        axis, left, right = scale.axis, x_scale.start, x_scale.end
        grid, line = axis.get("gridcolor", "none"), axis.get("linecolor", "none")
        has_grid = axis.get("showgrid", True)
        for y, text in ticks:
            if has_grid:
                self.drawn.append(_line(left, y, right, y, grid))
            self._text(left - GAP_PX, y + TICK_PX * 0.35, [text], TICK_PX, anchor="end")
        x_axis = x_scale.axis
        for x, _ in x_scale.ticks(self._x_count(x_scale)):
            if x_axis.get("showgrid", True):
                self.drawn.append(_line(x, scale.start, x, scale.end, grid))
            self.drawn.append(_line(x, scale.start, x, scale.start + 4, line))
        self.drawn += [
            _line(left, scale.end, left, scale.start, line),
            _line(left, scale.start, right, scale.start, line),
        ]
        if title := _text_of(axis):
            x, y = LABEL_PX + 2, (scale.start + scale.end) / 2
            turned = f"translate({number(x)} {number(y)}) rotate(-90)"
            self.drawn.append(
                element("text", escape(title), transform=turned, text_anchor="middle", font_size=LABEL_PX)
            )

    def _x_count(self, x_scale: Scale) -> int:
        is_date = x_scale.axis.get("type") == "date"
        return max(round((x_scale.end - x_scale.start) / (X_TICK_PX * (1.25 if is_date else 1))), 2)

    def _x_labels(self, x_scale: Scale, bottom: float) -> None:
        under = bottom + TICK_PX + 7
        for x, text in x_scale.ticks(self._x_count(x_scale)):
            self._text(x, under, _lines_of(text), TICK_PX, anchor="middle")
        if title := _text_of(x_scale.axis):
            self._text((x_scale.start + x_scale.end) / 2, under + ROW_PX, [title], LABEL_PX, anchor="middle")

    # Texts

    def _title(self) -> None:
        title = self.layout["title"]
        text = _SPAN.sub(self._sentence, str(title["text"]))
        y = int(title.get("pad", {}).get("t", 14))
        for place, line in enumerate(text.split("<br>")):
            size = TICK_PX if place or _COLOUR.search(line) else int(title["font"]["size"])
            self._styled(12, y + place * 18, line, size, self.width - 24)

    def _sentence(self, span: re.Match[str]) -> str:
        """Return a sentence that was wrapped for a phone: on one line if there is room, otherwise as wrapped."""
        if self.width >= WIDE:
            return span[0].replace("<br>", "")
        return "<br>".join(f"{span[1]}{line}</span>" for line in span[2].split("<br>"))

    def _styled(
        self, x: float, y: float, text: str, size: int, room: float, *, anchor: str = "start", fill: str | None = None
    ) -> None:
        """Write a line of plotly's markup; letters are set closer if space is short."""
        spans, needed = [], 0.0
        for part in _PART.finditer(text):
            colour, plain = _COLOUR.search(part[0]), _plain(part[0])
            is_bold = "<b>" in part[0]
            part_px = TICK_PX if colour else size
            needed += len(plain) * part_px * (BOLD_LETTER if is_bold else LETTER)
            look: dict[str, object] = {"font_weight": "bold"} if is_bold else {}
            look |= {"font_size": part_px, "fill": colour[1]} if colour else {}
            spans.append(element("tspan", escape(plain), **look) if look else escape(plain))
        fitted = {"textLength": f"{room:.0f}", "lengthAdjust": "spacingAndGlyphs"} if needed > room else {}
        place = {"x": number(x), "y": number(y), "font_size": size, "text_anchor": anchor, "xml:space": "preserve"}
        self.drawn.append(element("text", *spans, "", **place, fill=fill, **fitted))

    def _text(
        self, x: float, y: float, lines: Sequence[str], size: float, *, anchor: str = "start", fill: str | None = None
    ) -> None:
        for place, line in enumerate(lines):
            at = {"x": number(x), "y": number(y + place * size * 1.25)}
            self.drawn.append(element("text", escape(line), **at, font_size=size, text_anchor=anchor, fill=fill))

    def _annotation(
        self, note: Mapping[str, Any], x_scale: Scale, scales: Mapping[str, Scale], ends: tuple[int, int]
    ) -> None:
        top, bottom = ends
        x = x_scale.start + float(note["x"]) * (x_scale.end - x_scale.start)
        if note["xref"] == "x":
            x = min(max(x_scale.at(float(note["x"])), x_scale.start), x_scale.end)
        x += float(note.get("xshift", 0))
        y = (
            bottom - float(note["y"]) * (bottom - top)
            if note["yref"] == "paper"
            else scales[note["yref"]].at(float(note["y"]))
        )
        y -= float(note.get("yshift", 0))
        lines = str(note["text"]).split("<br>")
        font = note.get("font", {})
        size = int(font.get("size", LABEL_PX))
        anchor = {"left": "start", "right": "end"}.get(str(note.get("xanchor")), "middle")
        if note.get("yanchor") == "top":
            y += size
        elif note.get("yanchor") == "bottom":
            y -= 4
        else:
            y -= (len(lines) - 1.7) * size * 1.25 / 2
        room = self.width - x - 4 if anchor == "start" else self.width - 8
        for place, line in enumerate(lines):
            self._styled(x, y + place * size * 1.25, line, size, room, anchor=anchor, fill=font.get("color"))

    # Traces

    def _trace(self, trace: _Trace, x_scale: Scale, scale: Scale) -> None:
        # Marks on the edge stay whole; a curve that leaves the plot would cross the text next to it.
        clip = self._clip(x_scale, scale, room=5 if trace.given.get("mode") == "markers" else 1)
        begin = len(self.drawn)
        if trace.is_bar:
            self._bars(trace, x_scale, scale)
        else:
            self._scatter(trace, x_scale, scale)
        content = "".join(self.drawn[begin:])
        del self.drawn[begin:]
        if content:
            self.drawn.append(element("g", content, clip_path=f"url(#{clip})", opacity=_opacity(trace.given)))

    def _clip(self, x_scale: Scale, scale: Scale, *, room: int) -> str:
        def made(id: str) -> str:
            sides = (x_scale.end - x_scale.start + 2 * room, scale.start - scale.end + 2 * room)
            box = (x_scale.start - room, scale.end - room, *sides)
            x, y, width, height = map(number, box)
            return element("clipPath", element("rect", x=x, y=y, width=width, height=height), id=id)

        return self._defined(("clip", scale.start, scale.end, room), made)

    def _defined(self, key: tuple[Any, ...], make: Callable[[str], str]) -> str:
        if key not in self.ids:
            self.ids[key] = f"d{len(self.ids)}"
            self.defs.append(make(self.ids[key]))
        return self.ids[key]

    def _bars(self, trace: _Trace, x_scale: Scale, scale: Scale) -> None:
        starts, widths = self._feet(trace, x_scale)
        low = trace.base if trace.base is not None else np.zeros(len(trace.y))
        left, right = x_scale.pixels(starts), x_scale.pixels(starts + widths)
        foot, head = scale.pixels(low), scale.pixels(low + trace.y)
        # Zero has no place on a logarithmic axis: bars begin at its end.
        foot = np.where(np.isfinite(foot), foot, scale.start)
        marker = trace.given["marker"]
        line = marker.get("line", {})
        has_edge = line.get("color") and line.get("width")
        edge = {"stroke": line["color"], "stroke_width": line["width"]} if has_edge else {}
        fill = self._fill(marker)
        boxes = "".join(
            f"M{number(x)} {number(y)}h{number(max(wide, 0.5))}v{number(high)}h{number(-max(wide, 0.5))}z"
            for x, y, wide, high in zip(
                left.tolist(), head.tolist(), (right - left).tolist(), (foot - head).tolist(), strict=True
            )
            if np.isfinite([x, y, wide, high]).all()
        )
        if boxes:
            self.drawn.append(element("path", d=boxes, fill=fill, **edge, opacity=_opacity(marker)))
        for text, x, y, wide in zip(
            trace.given.get("text", ()), left.tolist(), head.tolist(), (right - left).tolist(), strict=False
        ):
            middle = x + wide / 2
            if trace.given.get("textangle"):
                turned = f"translate({number(middle + 3)} {number(y - 3)}) rotate(-90)"
                place = {"transform": turned, "text_anchor": "start"}
            else:
                place = {"x": number(middle), "y": number(y - 3), "text_anchor": "middle"}
            self.drawn.append(element("text", escape(_plain(str(text))), **place, font_size=10))

    def _feet(self, trace: _Trace, x_scale: Scale) -> tuple[Values, Values]:
        """Return the bases and widths of bars, in axis units."""
        places = x_scale.numbers(trace.x)
        if trace.widths is not None:
            return places + float(trace.given.get("offset", 0)), trace.widths
        beside = [each for each in self.traces if each.is_bar and each.axis == trace.axis]
        gap, inner = self.layout.get("bargap", 0.2), self.layout.get("bargroupgap", 0)
        each_px = (1 - gap) / len(beside)
        starts = places - (1 - gap) / 2 + each_px * (beside.index(trace) + inner / 2)
        return starts, np.full(len(places), each_px * (1 - inner))

    def _fill(self, marker: Mapping[str, Any]) -> str:
        pattern = marker.get("pattern")
        if not pattern or not pattern.get("shape"):
            return str(marker["color"])
        is_over = pattern.get("fillmode") == "overlay"
        colour, ground = (pattern["fgcolor"], pattern["bgcolor"]) if is_over else (marker["color"], None)
        id = self._defined(
            ("pattern", pattern["shape"], colour, ground),
            lambda id: pattern_tile(id, pattern["shape"], str(colour), ground),
        )
        return f"url(#{id})"

    def _scatter(self, trace: _Trace, x_scale: Scale, scale: Scale) -> None:
        given = trace.given
        mode = str(given.get("mode", "lines"))
        x, y = x_scale.pixels(x_scale.numbers(trace.x)), scale.pixels(trace.y)
        if given.get("fill"):
            self._area(trace, x, y, x_scale, scale)
        if error := given.get("error_y"):
            self._errors(trace, error, x, scale)
        if "lines" in mode:
            line = given.get("line", {})
            path = _path(x, y, is_stepped=line.get("shape") == "hv")
            if path:
                stroke = {"stroke": line.get("color", "currentColor"), "stroke_width": line.get("width", 2)}
                dash = DASHES.get(line.get("dash"))
                look = {**stroke, "stroke_linejoin": "round", "stroke_dasharray": dash}
                self.drawn.append(element("path", d=path, fill="none", **look))
        if "markers" in mode:
            self._markers(given["marker"], x, y)
        if "text" in mode:
            self._words(given, x, y)

    def _area(self, trace: _Trace, x: Values, y: Values, x_scale: Scale, scale: Scale) -> None:
        given = trace.given
        colour = given.get("fillcolor", given["line"].get("color"))
        foot: str
        is_stepped = given["line"].get("shape") == "hv"
        if given["fill"] == "tonexty":
            before = self.traces[self.traces.index(trace) - 1]
            under = _path(
                x_scale.pixels(x_scale.numbers(before.x))[::-1], scale.pixels(before.y)[::-1], is_stepped=False
            )
            foot = f"L{under[1:]}z"
        else:
            zero = scale.at(max(0.0, 10**scale.least if scale.is_log else 0.0))
            foot = f"V{number(zero)}H{number(float(x[0]))}z"
        path = _path(x, y, is_stepped=is_stepped)
        if path and np.isfinite(y).all():
            shade = None if "fillcolor" in given else ".5"
            self.drawn.append(element("path", d=f"{path}{foot}", fill=colour, fill_opacity=shade))

    def _errors(self, trace: _Trace, error: Mapping[str, Any], x: Values, scale: Scale) -> None:
        above = scale.pixels(trace.y + as_numbers(_decoded(error["array"])))
        below = scale.pixels(trace.y - as_numbers(_decoded(error.get("arrayminus", error["array"]))))
        strokes = "".join(
            f"M{number(each)} {number(low)}V{number(high)}"
            for each, low, high in zip(x.tolist(), below.tolist(), above.tolist(), strict=True)
        )
        colour = error.get("color", trace.given["marker"]["color"])
        self.drawn.append(element("path", d=strokes, stroke=colour, stroke_width=error.get("thickness", 1)))

    def _markers(self, marker: Mapping[str, Any], x: Values, y: Values) -> None:
        if marker["color"] == "rgba(0,0,0,0)":
            return
        begin = len(self.drawn)
        names = _each(marker.get("symbol", "circle"), len(x))
        sizes = _each(_decoded(marker.get("size", 6)), len(x))
        for name, size, across, down in zip(names, sizes, x.tolist(), y.tolist(), strict=True):
            if size and np.isfinite([across, down]).all():
                sign = f"#{self._symbol(name, size, marker)}"
                self.drawn.append(element("use", href=sign, x=number(across), y=number(down)))
        if (opacity := _opacity(marker)) is not None and len(self.drawn) > begin:
            self.drawn[begin:] = [element("g", *self.drawn[begin:], opacity=opacity)]

    def _symbol(self, name: str, size: float, marker: Mapping[str, Any]) -> str:
        line = marker.get("line", {})

        def made(id: str) -> str:
            outline, look = symbol(name, size, str(marker["color"]), marker)
            return element("path", id=id, transform=f"scale({size / 2:g})", d=outline, **look)

        return self._defined(("symbol", name, size, marker["color"], line.get("color"), line.get("width")), made)

    def _words(self, given: Mapping[str, Any], x: Values, y: Values) -> None:
        font = given.get("textfont", {})
        size = int(font.get("size", LABEL_PX))
        places = _each(given.get("textposition", "middle center"), len(x))
        for text, place, across, down in zip(given["text"], places, x.tolist(), y.tolist(), strict=True):
            if text and np.isfinite([across, down]).all():
                side = {"left": ("end", -5), "right": ("start", 5)}.get(place.split()[-1], ("middle", 0))
                level = {"top": -6, "bottom": size + 4}.get(place.split()[0], size * 0.35)
                place_px = (across + side[1], down + level)
                self._text(*place_px, [_plain(str(text))], size, anchor=side[0], fill=font.get("color"))

    # Legend

    def _legends(self) -> dict[str, list[_Trace]]:
        """Return the entries of each legend."""
        shown: dict[str, dict[str, _Trace]] = {}
        for each in self.traces:
            if each.given.get("showlegend", True) and each.given.get("name"):
                group = str(each.given.get("legendgroup", each.given["name"]))
                shown.setdefault(each.given.get("legend", "legend"), {}).setdefault(group, each)
        return {name: list(entries.values()) for name, entries in shown.items()}

    def _column_px(self, entries: Sequence[_Trace]) -> int:
        longest = max((len(_plain(str(each.given["name"]))) for each in entries), default=0)
        return SIGN_PX + round(longest * LETTER * LEGEND_PX) + 14

    def _columns(self, entries: Sequence[_Trace]) -> int:
        return max((self.width - 24) // self._column_px(entries), 1)

    def _legend(self, entries: Sequence[_Trace], left: float, bottom: float) -> None:
        """Draw the entries of a legend in columns, the last row at the bottom."""
        columns, column_px = self._columns(entries), self._column_px(entries)
        rows = -(-len(entries) // columns)
        for place, each in enumerate(entries):
            x, y = left + place % columns * column_px, bottom - ROW_PX * (rows - 1 - place // columns)
            self._sign(each, x, y - 4)
            self._text(x + SIGN_PX, y, [_plain(str(each.given["name"]))], LEGEND_PX)

    def _sign(self, trace: _Trace, x: float, y: float) -> None:
        given = trace.given
        if trace.is_bar:
            marker = given["marker"]
            shade = max(marker.get("opacity", 1), 0.6 if marker.get("pattern") else 0.3)
            box = {"x": number(x + 3), "y": number(y - 5), "width": 12, "height": 10}
            self.drawn.append(element("rect", **box, fill=self._fill(marker), opacity=shade))
            return
        mode = str(given.get("mode", "lines"))
        if "lines" in mode:
            line = given.get("line", {})
            look = {"stroke": line.get("color"), "stroke_width": 2, "stroke_dasharray": DASHES.get(line.get("dash"))}
            self.drawn.append(element("path", d=f"M{number(x)} {number(y)}h18", **look))
        if "markers" in mode and given["marker"]["color"] != "rgba(0,0,0,0)":
            marker = given["marker"]
            name = next(iter(_each(marker.get("symbol", "circle"), 2)[-2:]), "circle")
            self.drawn.append(element("use", href=f"#{self._symbol(name, 8, marker)}", x=number(x + 9), y=number(y)))


def _decoded(value: Any) -> Any:
    """Decode an array from its JSON form: dtype, and bytes in base64."""
    if isinstance(value, Mapping):
        return np.frombuffer(base64.b64decode(value["bdata"]), dtype=np.dtype(value["dtype"]).newbyteorder("<"))
    return value


def _as_many(value: Any, like: Values) -> Values:
    return np.full(len(like), float(value)) if isinstance(value, int | float) else as_numbers(value)


def _each(value: Any, count: int) -> list[Any]:
    """Return one value for each: a single value is repeated."""
    return [value] * count if isinstance(value, str | int | float) else list(value)


def _axis_names(layout: Mapping[str, Any]) -> list[str]:
    names = [key[0] + key[5:] for key in layout if key.startswith("yaxis")]
    return sorted(names, key=lambda name: int(name[1:] or 1))


def _key(name: str) -> str:
    return f"{name[0]}axis{name[1:]}"


def _text_of(axis: Mapping[str, Any]) -> str:
    return _plain(str(axis.get("title", {}).get("text", "")))


def _plain(text: str) -> str:
    """Return a text of plotly's without its markup."""
    return unescape(_TAG.sub("", text)).replace("\u200b", "")


def _lines_of(text: str) -> list[str]:
    return [_plain(each) for each in text.split("<br>")]


def _path(x: Values, y: Values, *, is_stepped: bool) -> str:
    """Return a line through the points, with a gap at each missing one."""
    parts: list[str] = []
    is_drawing = False
    for across, down in zip(x.tolist(), y.tolist(), strict=True):
        if not np.isfinite(across) or not np.isfinite(down):
            is_drawing = False
            continue
        if not is_drawing:
            parts.append(f"M{number(across)} {number(down)}")
        else:
            parts.append(f"H{number(across)}V{number(down)}" if is_stepped else f"L{number(across)} {number(down)}")
        is_drawing = True
    return "".join(parts)


def _line(x: float, y: float, to_x: float, to_y: float, colour: str) -> str:
    return element("path", d=f"M{number(x)} {number(y)}L{number(to_x)} {number(to_y)}", stroke=colour)


def _opacity(given: Mapping[str, Any]) -> float | None:
    """Return the opacity of a trace or its marks; None for the usual one."""
    opacity: float = given.get("opacity", 1)
    return opacity if opacity != 1 else None
