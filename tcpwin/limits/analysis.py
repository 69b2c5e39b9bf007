"""An analysis with what the rules found: a stage of what `tcpwin.analyze` gives."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from tcpwin.analysis import Connections
from tcpwin.hosts import Analysis as JoinedAnalysis
from tcpwin.hosts import Connection as JoinedConnection

if TYPE_CHECKING:
    from tcpwin.limits.budget import Budget
    from tcpwin.limits.finding import Finding
    from tcpwin.limits.findings import Findings
    from tcpwin.limits.summary import Summary
    from tcpwin.limits.verdict import Verdict


class Connection(JoinedConnection):
    """A connection, with where its time went and what the rules found."""

    _analysis: Analysis

    @cached_property
    def budget(self) -> dict[str, Budget]:
        """Where the sender's time went, by direction: ``a_to_b`` and ``b_to_a``."""
        from tcpwin.limits.budget import draw_up

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
        from tcpwin.limits.verdict import judge_connection

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
        """What all rules found, with their default thresholds; `tcpwin.limits.check` takes others."""
        from tcpwin.limits.findings import check

        return check(self)

    @cached_property
    def summary(self) -> Summary:
        """The capture in words, with the three findings that cost most."""
        from tcpwin.limits.summary import summarize

        return summarize(self, self.findings)
