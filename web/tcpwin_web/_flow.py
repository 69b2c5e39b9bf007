"""A connection in, the one of its two directions out that the receive window cost more time."""

from dataclasses import dataclass
from typing import Literal

from tcpwin import Connection, Direction


@dataclass(frozen=True)
class Flow:
    """Data of one connection in one direction, with the window that limits it."""

    connection: Connection
    name: Literal["a_to_b", "b_to_a"]

    @property
    def direction(self) -> Direction:
        """Return what was measured of this flow."""
        return self.connection.a_to_b if self.name == "a_to_b" else self.connection.b_to_a

    @property
    def ends(self) -> str:
        """Return the sender and the receiver as text."""
        ends = (str(self.connection.a), str(self.connection.b))
        return " → ".join(ends if self.name == "a_to_b" else reversed(ends))


def worst_flow(connection: Connection) -> Flow:
    """Choose by the measure that `Analysis.worst` ranks connections by; more payload decides a tie."""

    def cost(flow: Flow) -> tuple[int, int]:
        direction = flow.direction
        return direction.zero_window_ns + direction.window_limited_ns, direction.payload_bytes

    return max(Flow(connection, "a_to_b"), Flow(connection, "b_to_a"), key=cost)
