"""What a figure is drawn of: an analysis or a connection, a direction, a span of time, and how many points.

In: a subject and options. Out: Request, through which figures read series, events and stalls of the span. It keeps
nothing beyond one figure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tcpwin.analysis import DIRECTIONS, DirectionName, Series, SeriesName
from tcpwin.errors import ArgumentError
from tcpwin.figures.drawing.kind import Nothing
from tcpwin.figures.drawing.theme import Theme, find_theme
from tcpwin.limits import Analysis, Connection

if TYPE_CHECKING:
    from tcpwin.analysis import Direction, EventColumns, StallColumns, Table, View

MIN_POINTS, MAX_POINTS = 16, 20_000
MARKS = 150
"""Of one kind of event or span, in one figure: a zoomed figure shows those between."""
MAX_ROWS = 1200
"""Segments that are drawn one by one."""
MAX_REREAD = 200_000
"""Packets of a capture that is read again for them though nobody asked for a span: a few hundredths of a second."""


@dataclass(frozen=True)
class Request:
    """One figure that was asked for.

    Attributes:
        analysis: what the subject is part of, or is.
        only: the connection; None where the subject is an analysis.
        direction: ``a_to_b`` or ``b_to_a``.
        start_ns, end_ns: the span, nanoseconds since the epoch; the connection's life where none was asked for.
        points: most points of a curve.
        theme: colours of background and text.
        is_zoomed: a span was asked for, and detail with it.
        field: which field of sockets, or which run of a reference, is drawn, where a figure is of any.
        marks: most events and spans of one kind.
    """

    analysis: Analysis
    only: Connection | None
    direction: DirectionName
    start_ns: int
    end_ns: int
    points: int
    theme: Theme
    is_zoomed: bool
    field: str | None = None
    marks: int = MARKS

    @property
    def connection(self) -> Connection:
        """The connection that is drawn."""
        assert self.only is not None
        return self.only

    @property
    def facts(self) -> Direction:
        """What was measured of the direction."""
        found: Direction = getattr(self.connection, self.direction)
        return found

    @property
    def sender(self) -> str:
        """The side whose data it is, ``a`` or ``b``."""
        return self.direction[0]

    @property
    def receiver(self) -> str:
        """The other side."""
        return self.direction[-1]

    @property
    def origin_ns(self) -> int:
        """Where the time axis has its zero: the connection's first segment."""
        return self.connection.start_ns

    def seconds(self, time_ns: NDArray[np.int64] | int) -> Any:
        """Times as seconds since the origin."""
        return (time_ns - self.origin_ns) / 1e9

    def with_less(self, share: float) -> Request:
        """The same with this share of points and marks; what was read stays."""
        fewer = replace(self, points=max(int(self.points * share), MIN_POINTS), marks=max(int(self.marks * share), 1))
        fewer.__dict__.update({name: self.__dict__[name] for name in ("view", "rows") if name in self.__dict__})
        return fewer

    def check(self) -> None:
        """Refuse a span in which the connection did not live.

        Raises:
            Nothing: it is such a span.
        """
        if self.end_ns < self.start_ns:
            raise Nothing("the connection has no segment in this span of time")

    @cached_property
    def view(self) -> View:
        """The connection in the span: buckets as fine as the points asked for, and rows where they are few."""
        if not self.is_zoomed:
            return self.connection.view()
        return self.connection.view(self.start_ns, self.end_ns, buckets=self.points, rows=MAX_ROWS)

    @cached_property
    def rows(self) -> Table | None:
        """The segments of the span, of both directions; None where they are too many to be told apart."""
        if self.is_zoomed:
            return self.view.rows
        segments = self.connection.a_to_b.segments + self.connection.b_to_a.segments
        is_cheap = self.analysis.capture.packets <= MAX_REREAD
        return self.connection.view(rows=MAX_ROWS).rows if is_cheap and segments <= MAX_ROWS else None

    def series(self, name: SeriesName) -> Series:
        """A series within the span; what holds until it changes begins with the value then in force."""
        return self.view.series(name, direction=self.direction)

    @property
    def events(self) -> EventColumns:
        """What happened in the span, of both directions."""
        return self.view.event_columns

    @property
    def stalls(self) -> StallColumns:
        """Stalls and pauses that touch the span."""
        return self.view.stall_columns


def make_request(
    subject: Connection | Analysis,
    scope: str,
    *,
    direction: str | None,
    start_ns: int | None,
    end_ns: int | None,
    points: int,
    theme: str,
    field: str | None = None,
) -> Request:
    """Fill in what was left open: the direction with most data, the whole life.

    Raises:
        ArgumentError: an option that there is not, a span that ends before it begins, or a figure of one connection
            that is asked of an analysis of several.
        TypeError: the subject is neither a connection nor an analysis.
    """
    if direction is not None and direction not in DIRECTIONS:
        raise ArgumentError(f"direction is a_to_b or b_to_a, not {direction}")
    if not MIN_POINTS <= points <= MAX_POINTS:
        raise ArgumentError(f"points are from {MIN_POINTS:,} to {MAX_POINTS:,}, not {points:,}")
    if start_ns is not None and end_ns is not None and end_ns <= start_ns:
        raise ArgumentError("the span ends before it begins")
    found = find_theme(theme)
    if not isinstance(subject, Connection | Analysis):
        raise TypeError(f"a figure is drawn of a Connection or an Analysis, not of a {type(subject).__name__}")
    analysis = subject if isinstance(subject, Analysis) else subject.analysis
    if scope == "analysis":
        return Request(analysis, None, direction or "a_to_b", start_ns or 0, end_ns or 0, points, found, False, field)
    if isinstance(subject, Analysis):
        if len(subject) != 1:
            raise ArgumentError("this figure is of one connection: choose one of analysis.connections")
        subject = subject.connections[0]
    first_ns = subject.start_ns if start_ns is None else max(start_ns, subject.start_ns)
    last_ns = subject.end_ns if end_ns is None else min(end_ns, subject.end_ns)
    return Request(
        analysis,
        subject,
        direction or busier_direction(subject),
        first_ns,
        last_ns,
        points,
        found,
        start_ns is not None or end_ns is not None,
        field,
    )


def busier_direction(connection: Connection) -> DirectionName:
    """The direction with more data, by what was sent or, where only ACKs were captured, acknowledged."""
    amounts = [max(each.payload_bytes, each.acked_bytes) for each in (connection.a_to_b, connection.b_to_a)]
    return "a_to_b" if amounts[0] >= amounts[1] else "b_to_a"
