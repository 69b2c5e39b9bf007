"""Draw figures of a stored capture as plotly's JSON, as `tcpwin plot` does.

Runs in worker processes. Figures of a whole connection are stored with the results, since everyone opens them.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcpwin import figures
from tcpwin.analysis import DirectionName
from tcpwin.limits import Analysis, Connection
from tcpwin.render.report import typed
from tcpwin.units import count_text
from tcpwin_web.jobs.executor import JobError
from tcpwin_web.jobs.opened import open_connections
from tcpwin_web.jobs.work import FileSet
from tcpwin_web.results import layout

TIMELINE = "timeline"
OVERVIEW = "overview"
POINTS = 1000
THEMES = ("light", "dark")


@dataclass(frozen=True)
class FigureQuery:
    """A requested figure.

    Attributes:
        name: name of a figure, or `TIMELINE` for several panels.
        panels: panels of a timeline, from top to bottom; its default panels if empty.
        connection: number of the connection; None for figures of the whole capture.
        direction: ``a_to_b`` or ``b_to_a``; None: the one with more data.
        start_ns, end_ns: the span, nanoseconds since the epoch; both None: the whole connection.
        field: field of socket samples, for figures with a choice of fields.
    """

    name: str
    connection: int | None = None
    panels: tuple[str, ...] = ()
    direction: str | None = None
    start_ns: int | None = None
    end_ns: int | None = None
    points: int = POINTS
    theme: str = "light"
    field: str | None = None

    @property
    def stored_name(self) -> str | None:
        """File name within the results; None if the figure is not stored."""
        is_whole = self.start_ns is None and self.end_ns is None
        if not is_whole or self.panels or self.field is not None or self.points != POINTS:
            return None
        name = f"figure-{self.name}-{self.direction or 'busier'}-{self.theme}.json"
        return name if self.connection is None else f"{layout.connection(self.connection)}/{name}"


def draw_figure(file_set: FileSet, folder: str, query: FigureQuery) -> str:
    """Draw one figure.

    Raises:
        JobError: there is no such figure, or not for this kind of subject.
    """
    analysis = file_set.analyze() if query.connection is None else open_connections(file_set, [query.connection])
    drawn = _as_json(_draw(analysis, query))
    name = query.stored_name
    if name is not None:
        _store(Path(folder) / name, drawn)
    return drawn


def store_figures(subject: Analysis | Connection, names: Iterable[str], folder: Path) -> None:
    """Draw the figures that people open first, in both themes, into a folder, and store their layouts."""
    analysis, id = (subject.analysis, subject.id) if isinstance(subject, Connection) else (subject, None)
    assert isinstance(analysis, Analysis)
    laid_out = {}
    for name in names:
        for theme in THEMES:
            query = FigureQuery(name, id, theme=theme)
            assert query.stored_name is not None
            drawn = _draw(analysis, query)
            _store(folder / Path(query.stored_name).name, _as_json(drawn))
            laid_out[name] = {key: drawn["layout"][key] for key in ("height", "meta")}
    _store(folder / layout.FIGURES, json.dumps(laid_out))


def draw_pair(old: FileSet, new: FileSet, ids: tuple[int, int], name: str, direction: DirectionName, theme: str) -> str:
    """Draw a connection above its counterpart in another capture, on the same axes.

    Raises:
        JobError: there is no such connection.
    """
    pair = []
    for file_set, id in zip((old, new), ids, strict=True):
        analysis = open_connections(file_set, [id])
        if id >= len(analysis):
            raise JobError(f"{file_set.name} has {count_text(len(analysis), 'connection')}, numbered from 0")
        pair.append((f"{file_set.name} #{id}", analysis.connections[id]))
    drawn = figures.plain_pair(name, pair, direction=direction, points=POINTS, theme=theme)
    return _as_json(drawn)


def _draw(analysis: Analysis, query: FigureQuery) -> Mapping[str, Any]:
    options: dict[str, Any] = {
        "direction": query.direction,
        "start_ns": query.start_ns,
        "end_ns": query.end_ns,
        "points": query.points,
        "theme": query.theme,
    }
    subject = analysis if query.connection is None else analysis.connections[query.connection]
    try:
        if query.name == TIMELINE:
            assert isinstance(subject, Connection)
            drawn: Mapping[str, Any] = figures.plain_timeline(subject, query.panels or None, **options)
        else:
            drawn = figures.plain(query.name, subject, field=query.field, **options)
    except (KeyError, ValueError) as error:
        raise JobError(str(error.args[0])) from None
    return drawn


def _as_json(drawn: Mapping[str, Any]) -> str:
    return json.dumps(typed(drawn), separators=(",", ":"))


def _store(path: Path, drawn: str) -> None:
    """Write a figure so that readers see all of it or nothing."""
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.write_text(drawn)
    new.replace(path)
