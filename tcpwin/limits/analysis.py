"""A measured capture with its hosts' records, findings and verdicts."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import IO, TYPE_CHECKING, Any, Protocol

from tcpwin._engine import EVENT_FIELDS
from tcpwin.analysis import SCHEMA, Connections, Measurement, cached
from tcpwin.errors import ArgumentError
from tcpwin.lazy import provided
from tcpwin.limits.connection import Connection
from tcpwin.limits.display import answer_html, answered

if TYPE_CHECKING:
    from pathlib import Path

    from tcpwin.analysis import CaptureFigureName, Table
    from tcpwin.hosts import Host, Joined, JoinedSample, ScaleClaim, SocketSample
    from tcpwin.limits.findings import Findings
    from tcpwin.limits.question import Question
    from tcpwin.limits.summary import Summary
    from tcpwin.limits.verdict import Verdict


class Report(Protocol):
    """A report made by `tcpwin.render.report`."""

    def html(self, *, theme: str = "auto") -> str:
        """Return one self-contained page."""

    def pdf(self) -> bytes:
        """Return the page as PDF."""

    def markdown(self) -> str:
        """Return the report as Markdown."""

    def json(self) -> str:
        """Return the report as a JSON document."""

    def write(self, path: str | Path, *, form: str | None = None, theme: str = "auto") -> None:
        """Write the report to a file, in the form that its name implies."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Counts of a file of packets.

    Attributes:
        packets: packets written.
        packets_cut: packets without the bytes after their headers.
        packets_commented: packets with a comment.
        packets_skipped: packets that cannot be copied because the capture does not describe their interface.
    """

    packets: int
    packets_cut: int
    packets_commented: int
    packets_skipped: int


class Analysis(Measurement):
    """The measurements of one input, with its hosts' records and its limits. Iterating yields connections.

    Attributes:
        notes: sentences about parts of bundles that were not read, and samples that could not be ordered.
    """

    _joined: Joined | None = None
    _question: Question | None = None

    @property
    def connections(self) -> Connections[Connection]:
        """The connections, in the order of their first segments."""
        return Connections(self, Connection, self._judge)

    def __iter__(self) -> Iterator[Connection]:
        return iter(self.connections)

    def _judge(self, start: int, stop: int | None) -> Table:
        from tcpwin.limits.columns import verdict_columns

        return verdict_columns(self, start=start, stop=stop)

    @cached
    def findings(self) -> Findings:
        """The findings of all rules with default thresholds; `tcpwin.limits.check` accepts others."""
        from tcpwin.limits.findings import check

        return check(self)

    @cached
    def problems(self) -> Sequence[int]:
        """The numbers of the connections with a problem, worst first."""
        from tcpwin.limits.ranking import problems

        return problems(self, self.findings)

    @cached
    def verdict(self) -> Verdict | None:
        """The verdict on the worst connection; None without connections."""
        from tcpwin.limits.ranking import worst

        ids = self.problems[:1] or worst(self, 1)
        return self.connections[ids[0]].verdict if ids else None

    @cached
    def summary(self) -> Summary:
        """The summary of the capture, with the costliest findings."""
        from tcpwin.limits.summary import summarize

        return summarize(self, self.findings)

    def worst(self, limit: int = 10) -> Sequence[Connection]:
        """Return the connections that lost the most time to limits that somebody can lift, worst first."""
        from tcpwin.limits.ranking import worst

        return [Connection(self, id) for id in worst(self, limit)]

    @property
    def hosts(self) -> tuple[Host, ...]:
        """The hosts in the snapshots; empty without snapshots."""
        return self._joined.hosts if self._joined is not None else ()

    def joined(self, id: int) -> tuple[JoinedSample, ...]:
        """Return the samples of a connection's sockets joined with the packets, in time order."""
        return self._joined.samples_beside(id) if self._joined is not None else ()

    def sockets_of(self, id: int) -> list[tuple[Host, str, list[SocketSample]]]:
        """Return each host's samples of a connection, with the side (``a`` or ``b``) of the socket."""
        return self._joined.sockets_of(id) if self._joined is not None else []

    def scale_claims(self, id: int) -> tuple[ScaleClaim, ...]:
        """Return the window scales that the samples of a connection's sockets report."""
        return self._joined.scale_claims(id) if self._joined is not None else ()

    def figure(self, name: CaptureFigureName = "overview", *, points: int = 1000, theme: str = "light") -> Any:
        """Draw all connections as a ``plotly.graph_objects.Figure``; `figures.draw` lists the errors.

        Args:
            name: one of ``tcpwin.figures.names("analysis")``.
        """
        return provided("draw")(name, self, points=points, theme=theme)

    def report(self, path: str | Path | None = None, *, limit: int = 10, theme: str = "auto") -> Report:
        """Make a standalone report: HTML, PDF, JSON or Markdown.

        >>> analysis.report("report.html")
        >>> print(analysis.report(limit=3).markdown())

        Args:
            path: the file to write, in the format that its name implies; `Report.write` lists the errors.
            limit: maximum number of connections shown in full.
            theme: HTML theme: ``auto``, ``light`` or ``dark``.
        """
        made: Report = provided("report")(self, limit=limit, given=self.findings)
        if path is not None:
            made.write(path, theme=theme)
        return made

    def slice(self, path: str | Path, **chosen: Any) -> Slice:
        """Write the packets of connections, a time span or findings to a pcapng file with comments.

        >>> analysis.slice("worst.pcapng", connections=[analysis.worst(1)[0].id])

        Args:
            chosen: `connections`, `start_ns` and `end_ns`, `findings` and `around`, `headers_only`, `comments`: see
                `tcpwin.render.slice_packets`.
        """
        made: Slice = provided("slice")(self, path, **chosen)
        return made

    def annotate(self, path: str | Path) -> Slice:
        """Write the whole capture to a pcapng file, with comments on packets that have events or findings."""
        made: Slice = provided("annotate")(self, path)
        return made

    def __repr__(self) -> str:
        """Describe the capture, with the answer about its worst connection."""
        return answered(super().__repr__(), self)

    def _repr_html_(self) -> str:
        return f"{answer_html(self)}{super()._repr_html_()}"

    def write_json(
        self,
        file: IO[str],
        *,
        connection: int | None = None,
        events: bool = False,
        fields: Collection[str] | None = None,
    ) -> None:
        """Write the analysis as one JSON document: all connections, or one, optionally with its events.

        Each connection includes its verdict and time budget, so the rules run.

        Args:
            fields: names of fields and groups to write, as ``tcpwin fields`` lists them, or ``all``. By default groups
                without any event are omitted: their values are null where that is possible, else 0 or false.

        Raises:
            ArgumentError: events were requested without a connection, or there is no such field or group.
            IndexError: the connection does not exist.
            SourceError: the source, read again for the events, has changed or can be read only once.
        """
        from tcpwin.limits.verdict_document import ConnectionWriter, describe_capture

        if events and connection is None:
            raise ArgumentError("events need a connection: pass its number")
        id = None if connection is None else self.connections[connection].id
        # Read before writing, so that an error does not leave half a document behind.
        listed = self._listed(id) if events and id is not None else None
        more = self._joined.describe_samples(id) if listed and id is not None and self._joined is not None else {}
        writer = ConnectionWriter(self, fields=fields)
        head: dict[str, Any] = {"schema": SCHEMA, "name": self.name, "capture": asdict(self.capture)}
        if self.selection is not None:
            head["selection"] = self.selection.to_dict()
        head |= describe_capture(self)
        if self._joined is not None:
            head |= self._joined.describe()
        file.write(json.dumps(head)[:-1])
        file.write(', "connections": [')
        write = _bytes_writer(file)
        if len(self):
            write(b"\n")
        if id is None:
            for part in writer.parts(",\n"):
                write(part)
        elif listed is None:
            write(writer.one(id))
        else:
            write(writer.one(id)[:-1])
            _write_events(file, *listed, more)
            write(b"}")
        file.write("]}\n")

    def write_json_lines(self, file: IO[str], *, fields: Collection[str] | None = None) -> None:
        """Write a line of JSON for each connection, as `write_json` writes it.

        Raises:
            ArgumentError: there is no such field or group.
        """
        from tcpwin.limits.verdict_document import ConnectionWriter

        write = _bytes_writer(file)
        for part in ConnectionWriter(self, fields=fields).parts("\n"):
            write(part)
        if len(self):
            write(b"\n")

    def to_json(self, *, fields: Collection[str] | None = None) -> str:
        """Return the whole analysis as one JSON document; `write_json` explains `fields`."""
        file = io.StringIO()
        self.write_json(file, fields=fields)
        return file.getvalue()

    def __reduce_ex__(self, protocol: Any, /) -> Any:
        """Pickle the arguments, from which unpickling repeats the analysis; the source must be readable again."""
        from tcpwin.limits.measuring import analyze_again

        if self._question is None:
            raise TypeError(
                "an Analysis of a source that can be read only once cannot be pickled: unpickling reads the capture "
                "again. Pass on its results, such as analysis.to_json(), or analyse a file"
            )
        return analyze_again, (self._question,)


def _bytes_writer(file: IO[str]) -> Callable[[bytes], object]:
    """Return a function that writes UTF-8 to a text file, past its encoder where the file has the same encoding."""
    buffer = getattr(file, "buffer", None)
    if buffer is None or str(getattr(file, "encoding", "")).lower().replace("-", "") != "utf8":
        return lambda text: file.write(text.decode())

    def write(text: bytes) -> None:
        file.flush()
        buffer.write(text)

    return write


def _write_events(file: IO[str], records: list[tuple[Any, ...]], omitted: int, more: dict[str, Any]) -> None:
    """Add events, one per line, and further members to a connection's object."""
    file.write(', "events": [')
    for position, record in enumerate(records):
        file.write((",\n" if position else "\n") + json.dumps(dict(zip(EVENT_FIELDS, record, strict=True))))
    file.write(f'], "events_omitted": {omitted}')
    for name, values in more.items():
        file.write(f", {json.dumps(name)}: {json.dumps(values)}")
