"""A request for a figure: its subject, direction, time span and number of points.

In: a subject and options. Out: Request, through which figures read series, events and stalls of the span. It holds
nothing after the figure is drawn.
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
"""Maximum number of events or spans of one kind in a figure; zooming shows the others."""
MAX_ROWS = 1200
"""Maximum number of segments that are drawn one by one."""
MAX_REREAD = 200_000
"""Maximum packets of a capture that is read again for segments without a zoom: a few hundredths of a second."""


@dataclass(frozen=True)
class Request:
    """A request for one figure.

    Attributes:
        analysis: the subject or the analysis that it is part of.
        only: the connection; None if the subject is an analysis.
        direction: ``a_to_b`` or ``b_to_a``.
        start_ns, end_ns: the span, nanoseconds since the epoch; by default the connection's lifetime.
        points: maximum number of points of a curve.
        theme: colours of background and text.
        is_zoomed: a span was given, so details are drawn.
        field: the field of sockets or the reference run to draw, if the figure has a choice.
        marks: maximum number of events and spans of one kind.
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
        """The connection to draw."""
        assert self.only is not None
        return self.only

    @property
    def facts(self) -> Direction:
        """The measurements of the direction."""
        found: Direction = getattr(self.connection, self.direction)
        return found

    @property
    def sender(self) -> str:
        """The side that sends the data, ``a`` or ``b``."""
        return self.direction[0]

    @property
    def receiver(self) -> str:
        """The other side."""
        return self.direction[-1]

    @property
    def origin_ns(self) -> int:
        """Zero of the time axis: the connection's first segment."""
        return self.connection.start_ns

    def seconds(self, time_ns: NDArray[np.int64] | int) -> Any:
        """Convert times to seconds since the origin."""
        return (time_ns - self.origin_ns) / 1e9

    def with_less(self, share: float) -> Request:
        """Return the same request with this share of points and marks; data already read is reused."""
        fewer = replace(self, points=max(int(self.points * share), MIN_POINTS), marks=max(int(self.marks * share), 1))
        fewer.__dict__.update({name: self.__dict__[name] for name in ("view", "rows") if name in self.__dict__})
        return fewer

    def check(self) -> None:
        """Check that the connection was alive in the span.

        Raises:
            Nothing: it was not.
        """
        if self.end_ns < self.start_ns:
            raise Nothing("the connection has no segment in this span of time")

    @cached_property
    def view(self) -> View:
        """The connection in the span: buckets as fine as the points requested, and rows if they are few."""
        if not self.is_zoomed:
            return self.connection.view()
        return self.connection.view(self.start_ns, self.end_ns, buckets=self.points, rows=MAX_ROWS)

    @cached_property
    def rows(self) -> Table | None:
        """The segments of the span, of both directions; None if there are too many to distinguish."""
        if self.is_zoomed:
            return self.view.rows
        segments = self.connection.a_to_b.segments + self.connection.b_to_a.segments
        is_cheap = self.analysis.capture.packets <= MAX_REREAD
        return self.connection.view(rows=MAX_ROWS).rows if is_cheap and segments <= MAX_ROWS else None

    def series(self, name: SeriesName) -> Series:
        """Return a series within the span; a stepwise series begins with the value then in force."""
        return self.view.series(name, direction=self.direction)

    @property
    def events(self) -> EventColumns:
        """The events in the span, of both directions."""
        return self.view.event_columns

    @property
    def stalls(self) -> StallColumns:
        """The stalls and pauses that overlap the span."""
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
    """Fill in defaults: the direction with most data, the whole lifetime.

    Raises:
        ArgumentError: an unknown option, a span that ends before it begins, or a figure of one connection requested
            for an analysis of several.
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
        raise TypeError(f"a figure's subject is a Connection or an Analysis, not a {type(subject).__name__}")
    analysis = subject if isinstance(subject, Analysis) else subject.analysis
    if scope == "analysis":
        return Request(analysis, None, direction or "a_to_b", start_ns or 0, end_ns or 0, points, found, False, field)
    if isinstance(subject, Analysis):
        if len(subject) != 1:
            raise ArgumentError("this figure shows one connection: choose one of analysis.connections")
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
    """Return the direction with more data, sent or, if only ACKs were captured, acknowledged."""
    amounts = [max(each.payload_bytes, each.acked_bytes) for each in (connection.a_to_b, connection.b_to_a)]
    return "a_to_b" if amounts[0] >= amounts[1] else "b_to_a"
