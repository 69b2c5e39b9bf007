"""An analysis with what the rules found: the last stage of what `tcpwin.analyze` gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from tcpwin.analysis import Connections
from tcpwin.snapshots import Analysis as JoinedAnalysis
from tcpwin.snapshots import Connection as JoinedConnection
from tcpwin.snapshots import analyze as join
from tcpwin.sources import Packets, Source

if TYPE_CHECKING:
    from tcpwin.findings._budget import Budget
    from tcpwin.findings._check import Findings
    from tcpwin.findings._finding import Finding
    from tcpwin.findings._summary import Summary
    from tcpwin.findings._verdict import Verdict
    from tcpwin.snapshots import Bundle
    from tcpwin.snapshots._load import Snapshots


class Connection(JoinedConnection):
    """A connection, with where its time went and what the rules found."""

    _analysis: Analysis

    @cached_property
    def budget(self) -> dict[str, Budget]:
        """Where the sender's time went, by direction: ``a_to_b`` and ``b_to_a``."""
        from tcpwin.findings._budget import draw_up

        sockets = self.socket_samples
        return {
            "a_to_b": draw_up(self.a_to_b, sockets.get("a", ())),
            "b_to_a": draw_up(self.b_to_a, sockets.get("b", ())),
        }

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the rules found of this connection, the costliest first."""
        return self._analysis.findings.of(self.id)

    @cached_property
    def verdict(self) -> Verdict:
        """What limited it, and who can change that; asks the rules, as `Analysis.findings` does."""
        from tcpwin.findings._verdict import judge_connection

        return judge_connection(self, self.findings)


class Analysis(JoinedAnalysis):
    """All that was measured of a capture, what its hosts said, and what the rules found."""

    @property
    def connections(self) -> Connections[Connection]:
        """The connections, in the order of their first segments."""
        return Connections(self, Connection)

    def worst(self, limit: int = 10) -> Sequence[Connection]:
        """Those that the receive window cost most time: closed, or too small for the next segment; worst first."""
        return [Connection(self, id) for id in self._engine.worst(limit)]

    @cached_property
    def findings(self) -> Findings:
        """What all rules found, with their default thresholds; `tcpwin.findings.check` takes others."""
        from tcpwin.findings._check import check

        return check(self)

    @cached_property
    def summary(self) -> Summary:
        """The capture in words, with the three findings that cost most."""
        from tcpwin.findings._summary import summarize

        return summarize(self, self.findings)


AnalysisT = TypeVar("AnalysisT", bound=Analysis)


def analyze(
    source: Packets | Source | Bundle,
    *,
    snapshots: Iterable[Snapshots] = (),
    capture: str | None = None,
    clock_offset_ns: int | None = None,
    follow: Iterable[int] | None = None,
    buckets: int = 1024,
    rows: int = 0,
    progress: Callable[[int], object] | None = None,
    kind: type[AnalysisT] = Analysis,  # type: ignore[assignment]
) -> AnalysisT:
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
        progress: called now and then with the bytes read so far.
        kind: the class of what is returned: a later stage's own.

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
        progress=progress,
        kind=kind,
    )
