"""An analysis whose parts can be drawn: what `tcpwin.analyze` gives.

In: a capture and snapshots. Out: the Analysis of the stage before, with figures. It draws nothing before it is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tcpwin.analysis import Connections
from tcpwin.hosts import analyze as join
from tcpwin.limits import Analysis as JudgedAnalysis
from tcpwin.limits import Connection as JudgedConnection
from tcpwin.sources import Packets, Source

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from tcpwin.hosts import Bundle
    from tcpwin.hosts.load import Snapshots
    from tcpwin.report.standalone import Report


class Connection(JudgedConnection):
    """A connection that can be drawn."""

    _analysis: Analysis

    def figure(
        self,
        name: str = "window",
        *,
        direction: str | None = None,
        start_ns: int | None = None,
        end_ns: int | None = None,
        points: int = 1000,
        theme: str = "light",
    ) -> Any:
        """A figure as a ``plotly.graph_objects.Figure``, which notebooks show; `figures.draw` says what is raised.

        Args:
            name: one of ``tcpwin.report.figures.names("connection")``; ``timeline`` is several on one time axis.
        """
        from tcpwin.report import figures

        options: dict[str, Any] = {"direction": direction, "start_ns": start_ns, "end_ns": end_ns}
        options |= {"points": points, "theme": theme}
        return figures.timeline(self, **options) if name == "timeline" else figures.draw(name, self, **options)


class Analysis(JudgedAnalysis):
    """All that was measured of a capture, what its hosts said, and what rules found; it makes figures and reports."""

    @property
    def connections(self) -> Connections[Connection]:
        """The connections, in the order of their first segments."""
        return Connections(self, Connection)

    def worst(self, limit: int = 10) -> Sequence[Connection]:
        """Those that the receive window cost most time: closed, or too small for the next segment; worst first."""
        return [Connection(self, id) for id in self._engine.worst(limit)]

    def figure(self, name: str = "overview", *, points: int = 1000, theme: str = "light") -> Any:
        """A figure of all connections, as a ``plotly.graph_objects.Figure``; `figures.draw` says what is raised.

        Args:
            name: one of ``tcpwin.report.figures.names("analysis")``.
        """
        from tcpwin.report import figures

        return figures.draw(name, self, points=points, theme=theme)

    def report(self, path: str | Path | None = None, *, limit: int = 10, theme: str = "auto") -> Report:
        """The standalone report: as HTML, PDF, JSON or Markdown.

        >>> analysis.report("report.html")
        >>> print(analysis.report(limit=3).markdown())

        Args:
            path: a file to write it to, in the form that its name says; `Report.write` says what is raised.
            limit: most connections told in full.
            theme: of HTML: ``auto``, ``light`` or ``dark``.
        """
        from tcpwin.report.standalone import Report

        made = Report(self, limit=limit, given=self.findings)
        if path is not None:
            made.write(path, theme=theme)
        return made


def analyze(
    source: Packets | Source | Bundle,
    *,
    snapshots: Iterable[Snapshots] = (),
    capture: str | None = None,
    clock_offset_ns: int | None = None,
    follow: Iterable[int] | None = None,
    buckets: int = 1024,
    rows: int = 0,
    index: str | os.PathLike[str] | None = None,
    progress: Callable[[int], object] | None = None,
) -> Analysis:
    """Read a capture once and measure every connection in it; with snapshots, put them beside it.

    Args:
        source: a path, several paths (read in time order), an open binary file, scapy packets or a dpkt reader; or a
            bundle, or the path of one (a folder, .zip or .tar.gz): its capture with its snapshots.
        snapshots: files of `ss`, `nstat`, `sockstat`, `sysctl` and so on, recognised by their content; bundles; or
            pairs of a host's name and a file.
        capture: which capture of a bundle, where it has several.
        clock_offset_ns: the capture's clock less the hosts', where it is known; otherwise it is estimated.
        follow: numbers of connections whose series and events are kept in this first pass already; others are read
            when they are asked for.
        buckets: most buckets a series has.
        rows: most rows that a view of a whole connection has without reading the source again.
        index: a file that says where each connection's packets are, eight bytes a packet: written in this pass, if it
            is not there or not of this capture, it lets details be read without the rest of the capture. Of one
            uncompressed file only; there is none of others, which are read as without.
        progress: called now and then with the bytes read so far.

    Raises:
        CaptureError: nothing can be read at all.
        SnapshotError: nothing can be read of a file of snapshots.
        SourceError: it is no source of packets, or, with snapshots, one that cannot be read again.
    """
    return join(
        source,
        snapshots=snapshots,
        capture=capture,
        clock_offset_ns=clock_offset_ns,
        follow=follow,
        buckets=buckets,
        rows=rows,
        index=index,
        progress=progress,
        kind=Analysis,
    )
