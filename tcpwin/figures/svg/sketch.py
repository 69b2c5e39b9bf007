"""A connection at a glance: window and flight over its lifetime in a few columns, and its time budget as a bar.

In: a view of a connection, a time budget. Out: SVG paths and parts of a bar, for pages that list many connections or
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
"""Size of a sketch, the viewBox of its SVG."""
SKETCH_BUCKETS = 4 * COLUMNS
"""Number of buckets in which series are read for a sketch."""
LIFE_COLUMNS = 600
"""Columns of a sketch as wide as a page, below figures that show a part of the lifetime."""
MOST_ABOVE = 3
"""End of the axis as a multiple of the flight: a window far above would flatten the curves."""
_STRETCHED = {"preserveAspectRatio": "none", "aria-hidden": "true"}
BLOCKS = " ▁▂▃▄▅▆▇█"
"""Heights that a terminal can show: unknown, then from 0 to the top."""
BLOCK_COLUMNS = 3
"""Columns of a sketch per character."""


@dataclass(frozen=True, slots=True)
class Sketch:
    """SVG paths in a box of `COLUMNS` by `HEIGHT`: a line, an area, and shades where the window was closed.

    A shade extends from the top by the share of its column in which the window was closed, and by at least one unit.
    `top_bytes` is the height of the box; the window's line stays at the top if the window is larger, up to
    `window_max_bytes`, which is 0 if no window is known.
    """

    window: str
    flight: str
    closed: str
    top_bytes: int
    window_max_bytes: int


@dataclass(frozen=True, slots=True)
class LifeSketch(Sketch):
    """A sketch of `LIFE_COLUMNS`, with bands for columns that are mostly silent."""

    silent: str


def draw_sketch(view: View, direction: DirectionName) -> Sketch:
    """Draw one direction's window and flight over the connection's lifetime."""
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
    """Return the share of each column in which the window was closed."""
    closed = view.zero_window_columns(direction=direction)
    return _shares(view, closed.start_ns, closed.end_ns, columns)


def _silent(view: View, columns: int) -> NDArray[np.bool_]:
    """Return the columns that are more than half silent."""
    silences = view.stall_columns
    return _shares(view, silences.start_ns, silences.end_ns, columns) > 1 / 2


def _shares(view: View, start_ns: NDArray[np.int64], end_ns: NDArray[np.int64], columns: int) -> NDArray[np.floating]:
    """Return the share of each column that the spans cover, which must be in order and not overlap."""
    import numpy as np

    if not len(start_ns):
        return np.zeros(columns)
    ends_ns = np.column_stack((start_ns, end_ns)).ravel() - view.connection.start_ns
    # Total length of the spans up to each of their ends.
    before_ns = np.cumsum(np.diff(ends_ns, prepend=0) * np.tile([0, 1], len(start_ns)))
    edges_ns = np.linspace(0, max(view.connection.duration_ns, 1), columns + 1)
    return np.asarray(np.diff(np.interp(edges_ns, ends_ns, before_ns)) / np.diff(edges_ns))


def draw_blocks(view: View, direction: DirectionName) -> tuple[str, str]:
    """Draw the same window and flight as characters for a terminal, on a common scale."""
    window, flight, top = _over_life(view, direction, COLUMNS)
    return _blocks(window, top), _blocks(flight, top)


def _blocks(values: NDArray[np.int64], top: int) -> str:
    most = values.reshape(-1, BLOCK_COLUMNS).max(axis=1).tolist()
    last = len(BLOCKS) - 2
    return "".join(BLOCKS[0] if each < 0 else BLOCKS[1 + min(each * last // top, last)] for each in most)


def _over_life(view: View, direction: DirectionName, columns: int) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Return the largest window and flight of each column, and the value at the top."""
    window = _columns(view, view.series("receive_window", direction=direction), columns)
    flight = _columns(view, view.series("flight", direction=direction), columns)
    top = max(int(window.max()), int(flight.max()), 1)
    if flight.max() > 0:
        top = min(top, MOST_ABOVE * int(flight.max()))
    return window, flight, top


def _columns(view: View, series: Series, columns: int) -> NDArray[np.int64]:
    """Return the largest value in each column, including the one in force at its start; -1 if none is known."""
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
    """Return start, value and length of runs of equal values, without those that have no value."""
    begin = 0
    for place in range(1, len(values) + 1):
        if place == len(values) or values[place] != values[begin]:
            value = values[begin]
            if value is not None:
                yield begin, value, place - begin
            begin = place


def _line(values: list[int | None]) -> Iterator[tuple[str, int, int]]:
    """Return a step line with gaps at columns without a value."""
    end = -1
    for begin, y, count in _runs(values):
        yield ("V" if begin == end else f"M{begin} "), y, count
        end = begin + count


def sketch_svg(paths: Mapping[str, Any], columns: int = COLUMNS) -> str:
    """Write a sketch or life sketch, given its paths by name, as an image of any width."""
    names = [
        name for name in ("silent", "closed", "flight", "window") if paths.get(name) or name in ("flight", "window")
    ]
    drawn = [element("path", class_=name, d=paths[name]) for name in names]
    return element("svg", *drawn, class_="sketch", viewBox=f"0 0 {columns} {HEIGHT}", **_STRETCHED)


def bar_svg(parts: Sequence[Mapping[str, Any]], width: int) -> str:
    """Write a bar, given the groups, starts and widths of its parts, as an image of any width."""
    drawn = [
        element("rect", class_=class_name(part["group"]), x=part["start"], width=part["width"], height=1)
        for part in parts
    ]
    return element("svg", *drawn, class_="bar-of-time", viewBox=f"0 0 {width} 1", **_STRETCHED)


def class_name(group: str) -> str:
    """Return the class name of a budget group."""
    return group.replace(" ", "-")


def colours_css() -> str:
    """Return the CSS rules that give sketches, bars and their legends the colours of figures."""
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
