"""A connection at a glance: window and flight over its life in a few columns, and where its time went as a bar.

In: a view of a connection, a time budget. Out: paths of SVG and parts of a bar, for pages that show many connections or
draw before a script runs. Colours are those of the figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpwin.analysis import DirectionName
from tcpwin.figures.drawing.theme import BUDGET_COLOURS, COLOURS
from tcpwin.figures.svg.writer import element

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tcpwin.analysis import Series, View

COLUMNS, HEIGHT = 60, 20
"""Of a sketch: the viewBox of its SVG."""
SKETCH_BUCKETS = 4 * COLUMNS
"""In which series are read for it."""
LIFE_COLUMNS = 600
"""Of a sketch as wide as a page, below figures that show a part of the life."""
MOST_ABOVE = 3
"""The axis ends at so many times the flight: a window far above would flatten all that happens."""
_STRETCHED = {"preserveAspectRatio": "none", "aria-hidden": "true"}
BLOCKS = " ▁▂▃▄▅▆▇█"
"""Heights that a terminal can show: of nothing known, then from 0 to the top."""
BLOCK_COLUMNS = 3
"""Columns of a sketch in a character."""


@dataclass(frozen=True, slots=True)
class Sketch:
    """Paths of SVG in a box of so many columns and `HEIGHT`: a line, an area, and shades where the window was closed.

    A shade hangs from the top as far down as the window was closed in its column: all of the height where it was closed
    all the time, at least one of `HEIGHT` where it was closed at all.
    `top_bytes` is the height of the box; the window's line stays at the top where the window is larger, up to
    `window_max_bytes`, which is 0 where no window is known.
    """

    window: str
    flight: str
    closed: str
    top_bytes: int
    window_max_bytes: int


@dataclass(frozen=True, slots=True)
class LifeSketch(Sketch):
    """A sketch of `LIFE_COLUMNS`, with bands where silences took more than half of a column."""

    silent: str


def draw_sketch(view: View, direction: DirectionName) -> Sketch:
    """Draw one direction's window and flight over the connection's whole life."""
    return Sketch(*_draw(view, direction, COLUMNS))


def draw_life(view: View, direction: DirectionName) -> LifeSketch:
    """Draw the same in finer columns, with the silences of both sides."""
    return LifeSketch(*_draw(view, direction, LIFE_COLUMNS), _bands(_silent(view, LIFE_COLUMNS)))


def _draw(view: View, direction: DirectionName, columns: int) -> tuple[str, str, str, int, int]:
    window, flight, top = _over_life(view, direction, columns)
    return (
        "".join(f"{move}{y}h{count}" for move, y, count in _line(_heights(window, top))),
        "".join(f"M{at} {HEIGHT}V{y}h{count}V{HEIGHT}z" for at, y, count in _runs(_heights(flight, top)) if y < HEIGHT),
        _shades(_closed(view, direction, columns)),
        top,
        max(int(window.max()), 0),
    )


def _bands(is_shaded: NDArray[np.bool_]) -> str:
    return _shades(is_shaded.astype(float))


def _shades(shares: NDArray[np.floating]) -> str:
    import numpy as np

    heights = np.where(shares > 0, np.maximum(np.rint(shares * HEIGHT), 1), 0).astype(int).tolist()
    return "".join(f"M{at} 0h{count}v{height}h-{count}z" for at, height, count in _runs(heights) if height)


def _closed(view: View, direction: DirectionName, columns: int) -> NDArray[np.floating]:
    """For what share of each column the window was closed."""
    closed = view.zero_window_columns(direction=direction)
    return _shares(view, closed.start_ns, closed.end_ns, columns)


def _silent(view: View, columns: int) -> NDArray[np.bool_]:
    """The columns of which silences took more than half."""
    silences = view.stall_columns
    return _shares(view, silences.start_ns, silences.end_ns, columns) > 1 / 2


def _shares(view: View, start_ns: NDArray[np.int64], end_ns: NDArray[np.int64], columns: int) -> NDArray[np.floating]:
    """What share of each column such spans took, which come in order and do not overlap."""
    import numpy as np

    if not len(start_ns):
        return np.zeros(columns)
    ends_ns = np.column_stack((start_ns, end_ns)).ravel() - view.connection.start_ns
    # How much of them there was up to each of their ends.
    before_ns = np.cumsum(np.diff(ends_ns, prepend=0) * np.tile([0, 1], len(start_ns)))
    edges_ns = np.linspace(0, max(view.connection.duration_ns, 1), columns + 1)
    return np.asarray(np.diff(np.interp(edges_ns, ends_ns, before_ns)) / np.diff(edges_ns))


def draw_blocks(view: View, direction: DirectionName) -> tuple[str, str]:
    """The same window and flight in characters of a terminal, both on one scale."""
    window, flight, top = _over_life(view, direction, COLUMNS)
    return _blocks(window, top), _blocks(flight, top)


def _blocks(values: NDArray[np.int64], top: int) -> str:
    most = values.reshape(-1, BLOCK_COLUMNS).max(axis=1).tolist()
    last = len(BLOCKS) - 2
    return "".join(BLOCKS[0] if each < 0 else BLOCKS[1 + min(each * last // top, last)] for each in most)


def _over_life(view: View, direction: DirectionName, columns: int) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """The greatest window and flight of each column, and the value at the top."""
    window = _columns(view, view.series("receive_window", direction=direction), columns)
    flight = _columns(view, view.series("flight", direction=direction), columns)
    top = max(int(window.max()), int(flight.max()), 1)
    if flight.max() > 0:
        top = min(top, MOST_ABOVE * int(flight.max()))
    return window, flight, top


def _columns(view: View, series: Series, columns: int) -> NDArray[np.int64]:
    """The greatest value in each column, with that in force when it begins; -1 where none is known."""
    import numpy as np

    most = np.full(columns, -1, dtype=np.int64)
    start_ns = view.connection.start_ns
    place = np.clip((series.time_ns - start_ns) * columns // (view.connection.duration_ns + 1), 0, columns - 1)
    before = -1
    for column in range(columns):
        here = slice(*np.searchsorted(place, [column, column + 1]).tolist())
        most[column] = before
        if here.start < here.stop:
            most[column] = max(series.max[here].max(), before)
            before = int(series.last[here][-1])
    return most


def _heights(values: NDArray[np.int64], top: int) -> list[int | None]:
    return [None if value < 0 else HEIGHT - min(round(value * HEIGHT / top), HEIGHT) for value in values.tolist()]


def _runs(values: list[int | None]) -> Iterator[tuple[int, int, int]]:
    """Where neighbours of one value begin, the value, and how many they are; those without a value are left out."""
    begin = 0
    for place in range(1, len(values) + 1):
        if place == len(values) or values[place] != values[begin]:
            value = values[begin]
            if value is not None:
                yield begin, value, place - begin
            begin = place


def _line(values: list[int | None]) -> Iterator[tuple[str, int, int]]:
    """A line of steps; it begins anew after columns without a value."""
    end = -1
    for begin, y, count in _runs(values):
        yield ("V" if begin == end else f"M{begin} "), y, count
        end = begin + count


def sketch_svg(paths: Mapping[str, Any], columns: int = COLUMNS) -> str:
    """Write a sketch, or a life, given its paths by name, as an image that any width can stretch."""
    names = [
        name for name in ("silent", "closed", "flight", "window") if paths.get(name) or name in ("flight", "window")
    ]
    drawn = [element("path", class_=name, d=paths[name]) for name in names]
    return element("svg", *drawn, class_="sketch", viewBox=f"0 0 {columns} {HEIGHT}", **_STRETCHED)


def bar_svg(parts: Sequence[Mapping[str, Any]], width: int) -> str:
    """Write a bar, given the groups, starts and widths of its parts, as an image that any width can stretch."""
    drawn = [
        element("rect", class_=class_name(part["group"]), x=part["start"], width=part["width"], height=1)
        for part in parts
    ]
    return element("svg", *drawn, class_="bar-of-time", viewBox=f"0 0 {width} 1", **_STRETCHED)


def class_name(group: str) -> str:
    """A group of the budget as the name of a class."""
    return group.replace(" ", "-")


def colours_css() -> str:
    """Rules that give sketches, bars and their keys the colours of figures."""
    groups = [f".{class_name(group)} {{ --colour: {colour}; }}" for group, colour in BUDGET_COLOURS.items()]
    drawn = [
        f".sketch .window {{ stroke: {COLOURS['receive window']}; }}",
        f".sketch .closed {{ fill: {COLOURS['zero window']}; }}",
        f".sketch .flight {{ fill: {COLOURS['flight']}; }}",
        f".sketch .silent {{ fill: {COLOURS['stall']}; }}",
    ]
    named = {
        "window": COLOURS["receive window"],
        "flight": COLOURS["flight"],
        "closed": COLOURS["zero window"],
        "silent": COLOURS["stall"],
    }
    keys = [f".key.sketch-{name} {{ --colour: {colour}; }}" for name, colour in named.items()]
    return "\n".join([*groups, *drawn, *keys, ""])
