"""One reading of a capture, and its measurements."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from tcpwin import _engine
from tcpwin.analysis.capture import Capture
from tcpwin.analysis.connection import MeasuredConnection
from tcpwin.analysis.connections import Connections
from tcpwin.analysis.icmp import IcmpError
from tcpwin.analysis.threads import threads_for
from tcpwin.analysis.view import View
from tcpwin.errors import ArgumentError, TcpwinError
from tcpwin.sources import Packets, SelectedSource, Selection, Source, resolve

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tcpwin.analysis.exchanges import ExchangeSummary, GroupName
    from tcpwin.analysis.table import Table
    from tcpwin.names import DirectionName

SCHEMA = "tcpwin/analysis/2"
"""Version of the JSON document: it grows when a name is removed or changes its meaning, not when one is added."""

FIRST_NS, LAST_NS = -(1 << 63), (1 << 63) - 1

Shifts = dict[int, tuple[tuple[int, bool] | None, tuple[int, bool] | None]]
"""Window scale shifts that are already known, by connection: of the first segment's sender and of the other side, each
with whether the user gave it."""


class Measurement:
    """The measured connections of one input; iterating yields them.

    `tcpwin.limits.Analysis` adds what the hosts recorded and what limited each connection.

    Attributes:
        notes: sentences about ignored parts of bundles, and about samples that could not be ordered.
    """

    def __init__(
        self,
        source: Source,
        engine: _engine.Result,
        *,
        buckets: int = 1024,
        rows: int = 0,
        shifts: Shifts | None = None,
        index: str | os.PathLike[str] | None = None,
        events: bool = False,
    ) -> None:
        self._source = source
        self._engine = engine
        self._buckets = buckets
        self._rows = rows
        self._shifts = shifts
        self._index = None if index is None else os.fspath(index)
        self.notes: tuple[str, ...] = ()
        details = engine.details()
        # Events and stalls of all connections, without series, if the first reading collected them.
        self._noted = details if events else None
        self._details = {} if events else dict.fromkeys(details.ids(), details)

    @classmethod
    def measure(
        cls,
        source: Packets | Source,
        *,
        follow: Iterable[int] | None = None,
        events: bool = False,
        buckets: int = 1024,
        rows: int = 0,
        index: str | os.PathLike[str] | None = None,
        threads: int | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> Self:
        """Read a capture once and measure every connection in it.

        Args:
            source: a path, several paths (read in time order), an open binary file, scapy packets or a dpkt reader.
            follow: connections whose series and events this pass collects; others are read on demand.
            events: collect events and stalls of all connections in this pass unless some are followed; takes a few
                hundred bytes each, and suits captures that rules will judge.
            buckets: maximum number of buckets in a series.
            rows: maximum number of rows in a view of a whole connection, without reading the source again.
            index: a file with the positions of each connection's packets (8 bytes each), used to read details without
                the rest of the capture. Created in this pass if it is missing or belongs to another capture; only for a
                single uncompressed file, and ignored for other sources.
            threads: number of threads that track connections; by default the available cores, where that helps. The
                results do not depend on it. With `follow`, `events` or `index` it is always one.
            progress: called periodically with the number of bytes read.

        Raises:
            CaptureError: nothing can be read.
            SourceError: the source is of an unsupported type.
            ArgumentError: `threads` is less than one.
        """
        if threads is not None and threads < 1:
            raise ArgumentError(f"threads is {threads}: one at least reads the capture")
        resolved = resolve(source)
        chosen = None if follow is None else set(follow)
        events = events and chosen is None
        engine = _engine.analyze(
            resolved.open(),
            name=resolved.name,
            follow="events" if events else chosen,
            buckets=buckets,
            rows=rows,
            index=index,
            threads=threads_for(resolved) if threads is None else threads,
            progress=progress,
        )
        return cls(resolved, engine, buckets=buckets, rows=rows, index=index, events=events)

    @classmethod
    def reopen(
        cls,
        source: Packets | Source,
        index: str | os.PathLike[str],
        connections: Iterable[int],
        totals: Mapping[str, Any],
        *,
        buckets: int = 1024,
        rows: int = 0,
    ) -> Self | None:
        """Read some connections of an already measured capture, without reading the rest of it.

        Args:
            index: the file that `measure` wrote.
            connections: connection numbers; no others can be used.
            totals: the value of `totals` after that measurement.

        Returns:
            None if the index does not match the source.
        """
        resolved = resolve(source)
        # After a round trip through JSON the numbers are text, and the pairs are lists.
        pairs = ((int(id), [given and tuple(given) for given in pair]) for id, pair in totals.get("shifts", {}).items())
        shifts: Shifts = {id: (pair[0], pair[1]) for id, pair in pairs}
        engine = _engine.reopen(
            resolved.open(),
            index,
            set(connections),
            facts=totals["facts"],
            counters=totals["counters"],
            buckets=buckets,
            rows=rows,
            shifts=shifts,
        )
        if engine is None:
            return None
        return cls(resolved, engine, buckets=buckets, rows=rows, shifts=shifts, index=index)

    @property
    def name(self) -> str:
        """Name of the file or of another source."""
        return self._source.name

    @property
    def selection(self) -> Selection | None:
        """The selection of packets that were read; None for all."""
        return self._source.selection if isinstance(self._source, SelectedSource) else None

    @cached_property
    def capture(self) -> Capture:
        """Facts and quality of the capture itself."""
        capture = Capture.from_engine(self._source.facts or self._engine.facts(), self._engine.counters())
        if self.selection is None or (first_ns := capture.first_time_ns) is None:
            return capture
        start_ns, end_ns = self.selection.span_ns(first_ns)
        return replace(capture, span_start_ns=start_ns, span_end_ns=end_ns)

    @property
    def connections(self) -> Connections[MeasuredConnection]:
        """The connections, in the order of their first segments."""
        return Connections(self, MeasuredConnection)

    def select(
        self, scope: str, conditions: Sequence[tuple[str, str, float | str | bool | None]]
    ) -> Sequence[tuple[int, DirectionName | None]]:
        """Find the connections or directions whose fields meet all conditions, without visiting each in Python.

        Args:
            scope: ``connection`` or ``direction``.
            conditions: a field, one of ``>= <= > < ==``, and a value; a direction's condition may use a field of its
                connection, such as ``connection.duration_ns``. Only ``== None`` matches a field without a value.

        Returns:
            Connection numbers, each with None or the direction's name. The sequence takes eight bytes for each match.

        Raises:
            KeyError: unknown field.
        """
        return self.select_all([(scope, conditions)])[0]

    def select_all(
        self, questions: Iterable[tuple[str, Sequence[tuple[str, str, float | str | bool | None]]]]
    ) -> list[Sequence[tuple[int, DirectionName | None]]]:
        """Return the result of `select` for each scope and its conditions, in one walk over the connections.

        Raises:
            KeyError: unknown field.
        """
        return self._engine.select([(scope == "direction", conditions) for scope, conditions in questions])

    def responders(
        self, scope: str, conditions: Sequence[tuple[str, str, float | str | bool | None]]
    ) -> dict[tuple[str, int], int]:
        """Count, by server address and port, the connections that meet all conditions, or whose direction a_to_b does.

        Raises:
            KeyError: unknown field.
        """
        return self._engine.responders(scope == "direction", conditions)

    def segments(self, *, connection: int | None = None) -> Table:
        """Return the per-segment table of one connection or of all; it grows with the segments. Reads the source again.

        Raises:
            IndexError: unknown connection.
            SourceError: the source changed, or could be read only once.
        """
        from tcpwin.analysis.segments import as_table

        source, name = self._source.open, self._source.name
        if connection is None:
            columns = _engine.row_columns(source(), name=name, shifts=self._shifts)
        else:
            id = self.connections[connection].id
            columns, is_same = self._engine.segments(source(), id, name=name, shifts=self._shifts, index=self._index)
            self._check_same(is_same)
        return as_table(columns, _engine.ROW_COLUMNS)

    def header_columns(self, connections: set[int], most: int) -> dict[str, NDArray[np.int64]]:
        """Return header fields of the segments of some connections, at most `most`; reads the source again.

        Raises:
            SourceError: the source changed, or could be read only once.
        """
        source = self._source
        return _engine.header_columns(source.open(), connections, most, name=source.name, shifts=self._shifts)

    @cached_property
    def icmp_errors(self) -> tuple[IcmpError, ...]:
        """The ICMP errors about segments, in order; at most the first thousand."""
        if not self.capture.quoted_in_icmp:
            return ()
        return tuple(map(IcmpError.from_engine, _engine.icmp_errors(self._engine)))

    def exchange_table(self, connections: Iterable[int] | None = None) -> Table:
        """Return the exchanges of some connections, or of all: one row for each request and its answer.

        Reads the source again, and lists at most `exchanges.MOST_EXCHANGES`; `list_exchanges` also returns what it
        omits.

        Raises:
            IndexError: unknown connection.
            SourceError: the source changed, or could be read only once.
        """
        from tcpwin.analysis.exchanges import list_exchanges

        return list_exchanges(self, connections).table

    def exchanges(self, by: GroupName = "port") -> ExchangeSummary:
        """Summarise the exchanges with each server: medians, tails and the slowest answers with their frames.

        Args:
            by: ``port`` (the server's address and port), ``host`` (pairs of hosts), ``connection``, or ``path`` (method
                and path of HTTP requests whose payload was captured).

        Raises:
            ArgumentError: unknown group.
            SourceError: the source changed, or could be read only once.
        """
        from tcpwin.analysis.exchanges import group_exchanges, list_exchanges

        return group_exchanges(self, list_exchanges(self, targets=by == "path"), by)

    def _exchanges(
        self, connections: Iterable[int], most: int, progress: Callable[[int], object] | None
    ) -> tuple[dict[str, Any], int]:
        """Return the columns of the connections' exchanges, and the number of exchanges beyond `most`."""
        columns, omitted, is_same = self._engine.exchanges(
            self._source.open(),
            set(connections),
            most,
            name=self._source.name,
            shifts=self._shifts,
            index=self._index,
            progress=progress,
        )
        self._check_same(is_same)
        return columns, omitted

    def _request_targets(
        self, frames: Sequence[int], progress: Callable[[int], object] | None
    ) -> tuple[Any, list[str]]:
        """Return codes and words of the HTTP targets in these frames, which must be in order."""
        return _engine.request_targets(self._source.open(), frames, name=self._source.name, progress=progress)

    def follow(self, connections: Iterable[int]) -> None:
        """Read series and events of several connections in one pass, so that later access needs no reading."""
        wanted = {id for id in connections if id not in self._details}
        if wanted:
            details = self._read_details(wanted, buckets=self._buckets)
            self._details.update(dict.fromkeys(wanted, details))

    def follow_events(self, connections: Iterable[int]) -> None:
        """Read events and stalls of several connections in one pass, unless they were already collected."""
        if self._noted is None:
            self.follow(connections)

    def views(
        self,
        connections: Iterable[int],
        start_ns: int | None = None,
        end_ns: int | None = None,
        *,
        buckets: int | None = None,
        rows: int = 0,
    ) -> list[View]:
        """Return `MeasuredConnection.view` of several connections, reading the source once.

        Raises:
            IndexError: unknown connection.
            ArgumentError: the span ends before it begins.
            SourceError: the source changed, or could be read only once.
        """
        return self._views([self.connections[id] for id in connections], start_ns, end_ns, buckets, rows)

    def _views(
        self,
        connections: Sequence[MeasuredConnection],
        start_ns: int | None,
        end_ns: int | None,
        buckets: int | None,
        rows: int,
    ) -> list[View]:
        if not connections:
            return []
        for name, time_ns in (("begins", start_ns), ("ends", end_ns)):
            if time_ns is not None and not FIRST_NS <= time_ns <= LAST_NS:
                raise ArgumentError(f"the span {name} at {time_ns} ns, which is not a valid time")
        if start_ns is not None and end_ns is not None and end_ns < start_ns:
            raise ArgumentError(f"the span ends at {end_ns} ns, before it begins at {start_ns} ns")
        buckets = self._buckets if buckets is None else buckets
        is_life = start_ns is None and end_ns is None and buckets == self._buckets
        if is_life and rows <= self._rows:
            self.follow(connection.id for connection in connections)
            return [View(each, self._details[each.id], rows=rows) for each in connections]
        ids = {connection.id for connection in connections}
        details = self._read_details(ids, start_ns=start_ns, end_ns=end_ns, buckets=buckets, rows=rows)
        return [View(each, details, start_ns=start_ns, end_ns=end_ns, rows=rows) for each in connections]

    def _happened(self, connection: MeasuredConnection) -> View:
        """Return a view with a connection's events and stalls."""
        if self._noted is None or connection.id in self._details:
            return self._life(connection)
        return View(connection, self._noted)

    def _life(self, connection: MeasuredConnection) -> View:
        self.follow([connection.id])
        return View(connection, self._details[connection.id])

    def _read_details(
        self,
        connections: Iterable[int],
        *,
        start_ns: int | None = None,
        end_ns: int | None = None,
        buckets: int,
        rows: int | None = None,
    ) -> _engine.Details:
        details = self._engine.follow(
            self._source.open(),
            set(connections),
            name=self._source.name,
            buckets=buckets,
            rows=self._rows if rows is None else rows,
            start_ns=FIRST_NS if start_ns is None else start_ns,
            end_ns=LAST_NS if end_ns is None else end_ns,
            shifts=self._shifts,
            index=self._index,
        )
        self._check_same(details.is_same)
        return details

    def _check_same(self, is_same: bool) -> None:
        if not is_same:
            raise TcpwinError(f"{self.name} changed since it was analysed; analyse it again")

    def _listed(self, id: int) -> tuple[list[tuple[Any, ...]], int]:
        """Return a connection's events, and the number of events omitted."""
        self.follow([id])
        return self._details[id].events(id)

    def totals(self) -> dict[str, Any]:
        """Return facts and counts of the whole capture as plain values, for `reopen`."""
        return {"facts": self._engine.facts(), "counters": self._engine.counters(), "shifts": self._shifts or {}}

    def __iter__(self) -> Iterator[MeasuredConnection]:
        return iter(self.connections)

    def __len__(self) -> int:
        return len(self._engine)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return this object itself: nothing modifies it, and the capture is not read again."""
        return self

    def __repr__(self) -> str:
        from tcpwin.units import count_text

        capture = self.capture
        counts = [count_text(capture.packets, "packet"), count_text(len(self), "connection")]
        if capture.warnings:
            counts.append(count_text(len(capture.warnings), "warning"))
        return f"<{type(self).__name__} of {self.name}: {', '.join(counts)}>"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<p>{escape(repr(self)[1:-1])}</p>{self.connections._repr_html_()}"
