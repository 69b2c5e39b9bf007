"""What this stage says of an analysis and of its connections: the rooms that `tcpwin.analysis` opens here."""

from __future__ import annotations

from tcpwin.analysis import Analysis, Connection, DirectionName
from tcpwin.limits.budget import Budget, draw_up
from tcpwin.limits.findings import Findings, check
from tcpwin.limits.ranking import problems, worst
from tcpwin.limits.summary import Summary, summarize
from tcpwin.limits.verdict import Verdict, choose_direction, judge_directions


def budgets_of(connection: Connection) -> dict[str, Budget]:
    """Where the sender's time went, by direction: ``a_to_b`` and ``b_to_a``."""
    sockets = connection.socket_samples if connection.analysis.hosts else {}
    there_ns, back_ns = connection._analysis._engine.budget(connection.id)
    return {
        "a_to_b": draw_up(connection.a_to_b, sockets.get("a", ()), spent_ns=there_ns),
        "b_to_a": draw_up(connection.b_to_a, sockets.get("b", ()), spent_ns=back_ns),
    }


def verdicts_of(connection: Connection) -> dict[DirectionName, Verdict]:
    """What limited each direction, by its budget and all that the rules found of it."""
    return judge_directions(connection, connection.findings)


def verdict_of(connection: Connection) -> Verdict:
    """What limited the direction that lost most, else the one with more data."""
    return choose_direction(connection, connection.verdicts)


def problems_of(analysis: Analysis) -> list[int]:
    """Numbers of the connections whose verdict is a problem, the worst first."""
    return problems(analysis, analysis.findings)


def worst_verdict_of(analysis: Analysis) -> Verdict | None:
    """The verdict on the worst connection; None without any."""
    ids = analysis.problems[:1] or worst(analysis, 1)
    return analysis.connections[ids[0]].verdict if ids else None


def findings_of(analysis: Analysis) -> Findings:
    """What all rules find, with their default thresholds."""
    return check(analysis)


def summary_of(analysis: Analysis) -> Summary:
    """The capture in words."""
    return summarize(analysis, analysis.findings)
