"""Whether a receive window held a connection back: the plain test behind `--check` and the order of the report."""

from __future__ import annotations

from dataclasses import dataclass

from tcpwin.analysis import Analysis, Connection, Direction

MIN_COST_NS = 200_000_000
"""Less is below what a person notices, and below Linux's shortest retransmission timeout."""
MIN_SHARE = 0.1
"""Of the connection's duration: a window that binds now and then is at work as designed."""

CLOSED_SHARE = 0.1
"""Of the cost: a window that is closed for so long closes for want of a reader; below, it is merely small."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A direction that its receiver's window held back.

    Attributes:
        sender, receiver: ``a`` or ``b``.
        kind: ``dead_zero_window`` (closed, never opened again), ``zero_window``, ``scaling_disabled`` or ``limited``.
        cost_ns: time that the window cost, see the field ``window_cost_ns``.
        share: of the connection's duration.
    """

    sender: str
    receiver: str
    kind: str
    cost_ns: int
    share: float


def judge(connection: Connection) -> list[Problem]:
    """The receive-window problems of a connection, the costlier first."""
    found = []
    for sender, receiver, direction in (("a", "b", connection.a_to_b), ("b", "a", connection.b_to_a)):
        cost_ns = direction.window_cost_ns
        share = cost_ns / connection.duration_ns if connection.duration_ns else 0.0
        is_dead = any(episode.ended_by in ("open", "reset") for episode in direction.zero_window_episodes[-1:])
        if cost_ns >= MIN_COST_NS and (share >= MIN_SHARE or is_dead):
            found.append(Problem(sender, receiver, _kind(direction, is_dead), cost_ns, share))
    return sorted(found, key=lambda problem: -problem.cost_ns)


def find_held_back(analysis: Analysis) -> list[int]:
    """Numbers of the connections with a problem, the costlier first."""
    return analysis.held_back(cost_ns=MIN_COST_NS, share=MIN_SHARE)


def _kind(direction: Direction, is_dead: bool) -> str:
    if is_dead:
        return "dead_zero_window"
    if direction.zero_window_ns >= CLOSED_SHARE * direction.window_cost_ns:
        return "zero_window"
    return "scaling_disabled" if direction.window_scale.state == "disabled" else "limited"
