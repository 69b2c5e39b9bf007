"""The result of reading a capture."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any

from tcpwin import _engine
from tcpwin.analysis.capture import Capture
from tcpwin.analysis.connection import Connection
from tcpwin.analysis.connections import Connections
from tcpwin.analysis.names import DirectionName
from tcpwin.analysis.rooms import later, room
from tcpwin.analysis.threads import threads_for
from tcpwin.analysis.view import View
from tcpwin.errors import ArgumentError, TcpwinError
from tcpwin.sources import Packets, SelectedSource, Selection, Source, resolve

if TYPE_CHECKING:
    from pathlib import Path

    from tcpwin.analysis.names import CaptureFigureName
    from tcpwin.analysis.table import Table
    from tcpwin.hosts import Host, Joined, JoinedSample, ScaleClaim, SocketSample
    from tcpwin.limits import Findings, Summary, Verdict
    from tcpwin.render import Slice
    from tcpwin.render.report import Report

SCHEMA = "tcpwin/analysis/2"
"""Version of the JSON document: the number grows when a name goes or changes its meaning; additions keep it."""

FIRST_NS, LAST_NS = -(1 << 63), (1 << 63) - 1

Shifts = dict[int, tuple[tuple[int, bool] | None, tuple[int, bool] | None]]
"""Window scale shifts from elsewhere, by connection: of the first segment's sender and of the other side, each with
whether it was given by hand."""


class Analysis:
    """All that was measured of one input, what its hosts said, and what limited it. Iterating gives its connections.

    Attributes:
        notes: sentences on what was not read of bundles, and on samples that could not be put in order.
    """

    findings: Findings = room(
        "tcpwin.limits",
        "findings_of",
        "What all rules found, with their default thresholds; `tcpwin.limits.check` takes others.",
    )
    problems: Sequence[int] = room("tcpwin.limits", "problems_of", "Connections with a problem, the worst first.")
    verdict: Verdict | None = room(
        "tcpwin.limits", "worst_verdict_of", "What limited the worst connection; None without any."
    )
    summary: Summary = room("tcpwin.limits", "summary_of", "The capture in words, with the findings that cost most.")

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
        self._joined: Joined | None = None
        self._question: Any = None
        self.notes: tuple[str, ...] = ()
        kept = engine.details()
        # Events and stalls of all connections, without series, where the first reading kept them.
        self._noted = kept if events else None
        self._details = {} if events else dict.fromkeys(kept.ids(), kept)

    @property
    def name(self) -> str:
        """The file, or what was read instead of one."""
        return self._source.name

    @property
    def selection(self) -> Selection | None:
        """Which packets were looked at; None for all."""
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
    def connections(self) -> Connections:
        """The connections, in the order of their first segments."""
        return Connections(self)

    def worst(self, limit: int = 10) -> Sequence[Connection]:
        """Those whose verdicts say that most time was lost to what somebody can mend; worst first. Asks the rules."""
        found: list[int] = later("tcpwin.limits", "worst")(self, limit)
        return [Connection(self, id) for id in found]

    @property
    def hosts(self) -> tuple[Host, ...]:
        """The hosts of the snapshots; empty without any."""
        return self._joined.hosts if self._joined is not None else ()

    def joined(self, id: int) -> tuple[JoinedSample, ...]:
        """The samples of a connection's sockets beside the packets, in order of time."""
        return self._joined.samples_beside(id) if self._joined is not None else ()

    def sockets_of(self, id: int) -> list[tuple[Host, str, list[SocketSample]]]:
        """Each host's samples of a connection, with the side, ``a`` or ``b``, whose socket they are."""
        return self._joined.sockets_of(id) if self._joined is not None else []

    def scale_claims(self, id: int) -> tuple[ScaleClaim, ...]:
        """What the samples of a connection's sockets say of its window scales."""
        return self._joined.scale_claims(id) if self._joined is not None else ()

    def figure(self, name: CaptureFigureName = "overview", *, points: int = 1000, theme: str = "light") -> Any:
        """A figure of all connections, as a ``plotly.graph_objects.Figure``; `figures.draw` says what is raised.

        Args:
            name: one of ``tcpwin.figures.names("analysis")``.
        """
        return later("tcpwin.figures", "draw")(name, self, points=points, theme=theme)

    def report(self, path: str | Path | None = None, *, limit: int = 10, theme: str = "auto") -> Report:
        """The standalone report: as HTML, PDF, JSON or Markdown.

        >>> analysis.report("report.html")
        >>> print(analysis.report(limit=3).markdown())

        Args:
            path: a file to write it to, in the form that its name says; `Report.write` says what is raised.
            limit: most connections told in full.
            theme: of HTML: ``auto``, ``light`` or ``dark``.
        """
        made: Report = later("tcpwin.render.report", "Report")(self, limit=limit, given=self.findings)
        if path is not None:
            made.write(path, theme=theme)
        return made

    def slice(self, path: str | Path, **chosen: Any) -> Slice:
        """Write the packets of connections, of a span or of findings to a pcapng file with comments.

        >>> analysis.slice("worst.pcapng", connections=[analysis.worst(1)[0].id])

        Args:
            chosen: `connections`, `start_ns` and `end_ns`, `findings` and `around`, `headers_only`, `comments`:
                `tcpwin.render.slice_packets` says what they are and what is raised.
        """
        made: Slice = later("tcpwin.render", "slice_packets")(self, path, **chosen)
        return made

    def annotate(self, path: str | Path) -> Slice:
        """Write the whole capture to a pcapng file whose comments say at each packet what was found there."""
        made: Slice = later("tcpwin.render", "annotate")(self, path)
        return made

    def select(
        self, scope: str, conditions: Sequence[tuple[str, str, float | str | bool | None]]
    ) -> Sequence[tuple[int, DirectionName | None]]:
        """Connections, or their directions, whose fields meet all conditions, without looking at each from Python.

        Args:
            scope: ``connection`` or ``direction``.
            conditions: name of a field, one of ``>= <= > < ==``, value; a direction's condition may be on a field of
                its connection, as ``connection.duration_ns``. A field without a value meets ``== None`` only.

        Returns:
            Each connection's number, with None or the direction's name; eight bytes each until they are looked at.

        Raises:
            KeyError: there is no such field.
        """
        return self.select_all([(scope, conditions)])[0]

    def select_all(
        self, questions: Iterable[tuple[str, Sequence[tuple[str, str, float | str | bool | None]]]]
    ) -> list[Sequence[tuple[int, DirectionName | None]]]:
        """What `select` gives for each scope with its conditions, in one walk over the connections for all.

        Raises:
            KeyError: there is no such field.
        """
        return self._engine.select([(scope == "direction", conditions) for scope, conditions in questions])

    def responders(
        self, scope: str, conditions: Sequence[tuple[str, str, float | str | bool | None]]
    ) -> dict[tuple[str, int], int]:
        """How many connections to each address and port meet all conditions: themselves, or their direction a_to_b.

        Raises:
            KeyError: there is no such field.
        """
        return self._engine.responders(scope == "direction", conditions)

    def segments(self, *, connection: int | None = None) -> Table:
        """The per-segment table, of one connection or of all. Reads the source again; grows with the segments.

        Raises:
            IndexError: there is no such connection.
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

    def follow(self, connections: Iterable[int]) -> None:
        """Read series and events of several connections in one go, so that asking for each is free."""
        wanted = {id for id in connections if id not in self._details}
        if wanted:
            details = self._read_details(wanted, buckets=self._buckets)
            self._details.update(dict.fromkeys(wanted, details))

    def follow_events(self, connections: Iterable[int]) -> None:
        """Read events and stalls of several connections in one go, if they were not kept, so that asking is free."""
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
        """What `Connection.view` gives, of several connections by their numbers, reading the source once.

        Raises:
            IndexError: there is no such connection.
            ArgumentError: the span ends before it begins.
            SourceError: the source changed, or could be read only once.
        """
        return self._views([self.connections[id] for id in connections], start_ns, end_ns, buckets, rows)

    def _views(
        self,
        connections: Sequence[Connection],
        start_ns: int | None,
        end_ns: int | None,
        buckets: int | None,
        rows: int,
    ) -> list[View]:
        if not connections:
            return []
        for name, time_ns in (("begins", start_ns), ("ends", end_ns)):
            if time_ns is not None and not FIRST_NS <= time_ns <= LAST_NS:
                raise ArgumentError(f"the span {name} at {time_ns} ns, which is no time")
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

    def _happened(self, connection: Connection) -> View:
        """Where events and stalls of a connection are."""
        if self._noted is None or connection.id in self._details:
            return self._life(connection)
        return View(connection, self._noted)

    def _life(self, connection: Connection) -> View:
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

    def write_json(self, file: IO[str], *, connection: int | None = None, events: bool = False) -> None:
        """Write the analysis as one JSON document: all connections, or one, which can come with its events.

        Each connection comes with its verdict and its time budget; the rules are asked for them.

        Raises:
            ArgumentError: events of all connections.
            IndexError: there is no such connection.
            SourceError: the source, read again for the events, changed, or could be read only once.
        """
        if events and connection is None:
            raise ArgumentError("events come with one connection: say which")
        id = None if connection is None else self.connections[connection].id
        # Before a byte is written: what cannot be read must not leave half a document behind.
        listed = self._listed(id) if events and id is not None else None
        more = self._more(id) if events and id is not None else {}
        head = self._head()
        judged: Iterator[str] = later("tcpwin.limits", "judged_members")(self, only=id)
        file.write(json.dumps(head)[:-1])
        file.write(', "connections": [')
        first, last = (0, len(self._engine)) if id is None else (id, id + 1)
        for number, members in zip(range(first, last), judged, strict=True):
            between = ",\n" if number > first else "\n"
            file.write(
                f"{between}{self._engine.json(number, number + 1)[:-1]}, {members}{'}' if listed is None else ''}"
            )
            if listed is not None:
                _write_events(file, *listed, more)
                file.write("}")
        file.write("]}\n")

    def _listed(self, id: int) -> tuple[list[tuple[Any, ...]], int]:
        self.follow([id])
        return self._details[id].events(id)

    def _head(self) -> dict[str, Any]:
        head = {"schema": SCHEMA, "name": self.name, "capture": asdict(self.capture)}
        if self.selection is not None:
            head["selection"] = self.selection.to_dict()
        head |= later("tcpwin.limits", "describe_capture")(self)
        return head if self._joined is None else {**head, **self._joined.describe()}

    def _more(self, id: int) -> dict[str, Any]:
        """What else a connection's object has where one is asked for."""
        return {} if self._joined is None else self._joined.describe_samples(id)

    def totals(self) -> dict[str, Any]:
        """Facts and counts of the whole capture as plain values: what `reopen` is told."""
        return {"facts": self._engine.facts(), "counters": self._engine.counters(), "shifts": self._shifts or {}}

    def to_json(self) -> str:
        """The whole analysis as one JSON document; its fields are listed by ``tcpwin fields``."""
        file = io.StringIO()
        self.write_json(file)
        return file.getvalue()

    def __iter__(self) -> Iterator[Connection]:
        return iter(self.connections)

    def __len__(self) -> int:
        return len(self._engine)

    def __copy__(self) -> Analysis:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Analysis:
        """Itself, as of other objects that nobody changes: the capture is not read again."""
        return self

    def __reduce_ex__(self, protocol: Any, /) -> Any:
        """Its question, asked again where it is unpickled: of files and bytes, which can be read again there."""
        if self._question is None:
            raise TypeError(
                "an Analysis of what can be read but once cannot be pickled: it reads its capture again when it is "
                "asked. Hand over what is wanted of it, as analysis.to_json(), or analyse a file"
            )
        return later("tcpwin.hosts", "analyze_again"), (self._question,)

    def __repr__(self) -> str:
        capture = self.capture
        warned = f", {len(capture.warnings)} warnings" if capture.warnings else ""
        return f"<Analysis of {self.name}: {capture.packets} packets, {len(self)} connections{warned}>"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<p>{escape(repr(self)[1:-1])}</p>{self.connections._repr_html_()}"


def _write_events(file: IO[str], records: list[tuple[Any, ...]], omitted: int, more: dict[str, Any]) -> None:
    """Add events, one a line, and what else there is to the object of a connection."""
    file.write(', "events": [')
    for position, record in enumerate(records):
        file.write((",\n" if position else "\n") + json.dumps(dict(zip(_engine.EVENT_FIELDS, record, strict=True))))
    file.write(f'], "events_omitted": {omitted}')
    for name, values in more.items():
        file.write(f", {json.dumps(name)}: {json.dumps(values)}")


def measure(
    source: Packets | Source,
    *,
    follow: Iterable[int] | None = None,
    events: bool = False,
    buckets: int = 1024,
    rows: int = 0,
    index: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> Analysis:
    """Read a capture once and measure every connection in it.

    Args:
        source: a path, several paths (read in time order), an open binary file, scapy packets or a dpkt reader.
        follow: numbers of connections whose series and events are kept in this first pass already; others are read
            when they are asked for.
        events: of all connections events and stalls are kept in this pass, where none are followed: some hundred bytes
            each, for captures that rules will be asked about.
        buckets: most buckets a series has.
        rows: most rows that a view of a whole connection has without reading the source again.
        index: a file that says where each connection's packets are, eight bytes a packet: written in this pass, if it
            is not there or not of this capture, it lets details be read without the rest of the capture. Of one
            uncompressed file only; there is none of others, which are read as without.
        threads: that track connections side by side; by default the cores available, where that helps. What is found
            is the same. With `follow`, `events` or `index` there is one.
        progress: called now and then with the bytes read so far.

    Raises:
        CaptureError: nothing can be read at all.
        SourceError: it is no source of packets.
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
    return Analysis(resolved, engine, buckets=buckets, rows=rows, index=index, events=events)


def reopen(
    source: Packets | Source,
    index: str | os.PathLike[str],
    connections: Iterable[int],
    totals: Mapping[str, Any],
    *,
    buckets: int = 1024,
    rows: int = 0,
) -> Analysis | None:
    """Some connections of a capture that was measured before, without reading the rest of it.

    Args:
        index: the file that `measure` wrote.
        connections: their numbers; others cannot be asked for.
        totals: what `Analysis.totals` said.

    Returns:
        None where the index does not fit the source.
    """
    resolved = resolve(source)
    # Of totals that went through JSON the numbers are text, and the pairs are lists.
    told = ((int(id), [given and tuple(given) for given in pair]) for id, pair in totals.get("shifts", {}).items())
    shifts: Shifts = {id: (pair[0], pair[1]) for id, pair in told}
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
    return Analysis(resolved, engine, buckets=buckets, rows=rows, shifts=shifts, index=index)
