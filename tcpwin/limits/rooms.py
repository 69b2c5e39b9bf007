"""What this stage says of an analysis and of its connections: the rooms that `tcpwin.analysis` opens here."""

from __future__ import annotations

from tcpwin.analysis import Analysis, Connection
from tcpwin.limits.budget import Budget, draw_up
from tcpwin.limits.findings import Findings, check
from tcpwin.limits.summary import Summary, summarize
from tcpwin.limits.verdict import Verdict, judge_connection


def budgets_of(connection: Connection) -> dict[str, Budget]:
    """Where the sender's time went, by direction: ``a_to_b`` and ``b_to_a``."""
    sockets = connection.socket_samples
    return {
        "a_to_b": draw_up(connection.a_to_b, sockets.get("a", ())),
        "b_to_a": draw_up(connection.b_to_a, sockets.get("b", ())),
    }


def verdict_of(connection: Connection) -> Verdict:
    """What limited a connection, by its budget and all that the rules found of it."""
    return judge_connection(connection, connection.findings)


def findings_of(analysis: Analysis) -> Findings:
    """What all rules find, with their default thresholds."""
    return check(analysis)


def summary_of(analysis: Analysis) -> Summary:
    """The capture in words."""
    return summarize(analysis, analysis.findings)
