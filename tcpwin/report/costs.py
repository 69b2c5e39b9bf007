"""What cost a connection time besides a receive window: loss, restarts after a pause, waits for delayed ACKs."""

from __future__ import annotations

from dataclasses import dataclass

from tcpwin.analysis import Connection, Direction
from tcpwin.report.loss import needless_of, recovery_share_text
from tcpwin.report.problems import MIN_COST_NS, MIN_SHARE
from tcpwin.units import count_text, time_text


@dataclass(frozen=True, slots=True)
class Cost:
    """Time that something else than a receive window cost a direction.

    Attributes:
        sender: ``a`` or ``b``.
        kind: ``loss``, ``idle_restart`` or ``nagle``.
        text: a sentence that says so.
    """

    sender: str
    kind: str
    cost_ns: int
    text: str


def weigh(connection: Connection) -> list[Cost]:
    """The costs of a connection, the costlier first; none below the bounds of a window's problem."""
    found = []
    for sender, receiver, direction in (("a", "b", connection.a_to_b), ("b", "a", connection.b_to_a)):
        # The application's own pauses are no time that a restart could have cost.
        busy_ns = connection.duration_ns - direction.idle_ns
        recovery_share = direction.recovery_share or 0.0
        restart_ns, nagle_ns = direction.idle_restart_cost_ns, direction.nagle_delay_ns
        if _matters(direction.recovery_ns, recovery_share):
            found.append(Cost(sender, "loss", direction.recovery_ns, _loss_text(sender, direction)))
        if _matters(restart_ns, restart_ns / busy_ns if busy_ns > 0 else 0.0):
            found.append(Cost(sender, "idle_restart", restart_ns, _idle_restart_text(sender, direction)))
        # Only beside the sender is it seen that a segment left with the ACK for which it had waited.
        if direction.view == "sender" and _matters(nagle_ns, nagle_ns / busy_ns if busy_ns > 0 else 0.0):
            found.append(Cost(sender, "nagle", nagle_ns, _nagle_text(sender, receiver, direction)))
    return sorted(found, key=lambda cost: -cost.cost_ns)


def _matters(cost_ns: int, share: float) -> bool:
    return cost_ns >= MIN_COST_NS and share >= MIN_SHARE


def _loss_text(sender: str, direction: Direction) -> str:
    again = f"{count_text(direction.resent_segments, 'segment')} sent again"
    if direction.rto_retransmissions:
        again += f", {direction.rto_retransmissions:,} by timeout"
    needless = needless_of(direction)
    if needless:
        again += f", {needless:,} of them needlessly"
    return (
        f"{sender} spent {recovery_share_text(direction)} of the transfer in loss recovery, "
        f"{time_text(direction.recovery_ns)}: {again}"
    )


def _idle_restart_text(sender: str, direction: Direction) -> str:
    times, trips = direction.idle_restarts, direction.idle_restart_round_trips
    cost = time_text(direction.idle_restart_cost_ns)
    each = "1 round trip each" if trips == times > 1 else f"{count_text(trips, 'round trip')} in all"
    seems = "lost" if direction.view == "sender" else "seems, from here, to have lost"
    return (
        f"{sender} {seems} {cost} to idle restarts: {count_text(times, 'time')} the congestion window was cut after a "
        f"pause (tcp_slow_start_after_idle), {each}"
    )


def _nagle_text(sender: str, receiver: str, direction: Direction) -> str:
    small = count_text(direction.nagle_delays, "small segment")
    return (
        f"{sender} waited {time_text(direction.nagle_delay_ns)} for delayed ACKs of {receiver}: {small} held back by "
        f"Nagle's algorithm (TCP_NODELAY switches it off)"
    )
