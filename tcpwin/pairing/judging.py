"""The verdict on a paired connection: the usual judge, with evidence from both captures.

In: a paired connection, and the analyses of both captures. Out: JudgedConnection. The capture where the data leaves
shows how long a sender waited, and for what; the other shows the packets' fate and the receiver's behaviour.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from tcpwin.analysis import DirectionName
from tcpwin.limits import Budget, Crossing, Verdict, choose_direction, judge_directions, role_of
from tcpwin.pairing.connection import PairedConnection, PairedDirection

if TYPE_CHECKING:
    from tcpwin.analysis import Direction, Endpoint
    from tcpwin.limits import Analysis, Connection

_OTHER = {"a": "b", "b": "a"}


@dataclass(frozen=True, slots=True)
class View:
    """Flight and window of a direction's data in one capture; None if not visible.

    Attributes:
        capture: ``a`` or ``b``.
        flight_max_bytes, flight_mean_bytes: data in flight at that point.
        window_min_bytes, window_max_bytes, window_mean_bytes: the receiver's offered window, scaled by that point's
            SYNs.
        zero_window_ns: time with a closed window.
    """

    capture: str
    flight_max_bytes: int | None
    flight_mean_bytes: float | None
    window_min_bytes: int | None
    window_max_bytes: int | None
    window_mean_bytes: float | None
    zero_window_ns: int

    @classmethod
    def of(cls, capture: str, data: Direction) -> View:
        """Return the view measured by an analysis."""
        return cls(
            capture,
            data.flight_max_bytes,
            data.flight_mean_bytes,
            data.receive_window_min_bytes,
            data.receive_window_max_bytes,
            data.receive_window_mean_bytes,
            data.zero_window_ns,
        )


@dataclass(frozen=True, slots=True)
class JudgedDirection:
    """Verdict on one direction of a paired connection.

    Attributes:
        index: 0 or 1, as in the paired connection.
        names: ``a_to_b`` or ``b_to_a`` in each capture's analysis, by letter.
        verdict: the verdict from both captures.
        judged_in: the capture that showed the sender's waiting: where its data leaves, or else the other one.
        budget: the sender's time budget from both captures.
        alone: the verdict from each capture alone, by letter.
        sender_view: flight and window at the sender; `receiver_view`: at the receiver.
    """

    index: int
    names: Mapping[str, DirectionName]
    verdict: Verdict
    judged_in: str
    budget: Budget
    alone: Mapping[str, Verdict]
    sender_view: View
    receiver_view: View


@dataclass(frozen=True)
class JudgedConnection:
    """Verdict on a paired connection.

    Attributes:
        number: number of the paired connection.
        ids: id of the connection in each capture's analysis, by letter.
        roles: roles of source and target of its first direction: ``client``, ``server``, ``sender`` or ``receiver``.
        directions: verdicts on its directions, in the order of the paired ones.
        verdict: verdict on the direction that lost most time, else the one with more data.
        chosen: the index of that direction.
    """

    number: int
    ids: Mapping[str, int]
    roles: tuple[str, str]
    directions: tuple[JudgedDirection, JudgedDirection]
    chosen: int

    @property
    def verdict(self) -> Verdict:
        """Return the verdict from both captures."""
        return self.directions[self.chosen].verdict

    @property
    def main(self) -> JudgedDirection:
        """Return the direction that the verdict is about."""
        return self.directions[self.chosen]


@dataclass
class Judging:
    """Judges paired connections on demand."""

    analyses: Mapping[str, Analysis]
    _judged: dict[int, JudgedConnection | None] = field(default_factory=dict)

    def judge(self, paired: PairedConnection) -> JudgedConnection | None:
        """Judge a connection; None if an analysis lacks it."""
        if paired.number not in self._judged:
            self._judged[paired.number] = self._judge(paired)
        return self._judged[paired.number]

    def _judge(self, paired: PairedConnection) -> JudgedConnection | None:
        frames = {"a": paired.first_frame_a, "b": paired.first_frame_b}
        ids = {letter: self._places[letter].get(frame) for letter, frame in frames.items()}
        if ids["a"] is None or ids["b"] is None:
            return None
        found = {letter: self.analyses[letter].connections[id] for letter, id in ids.items() if id is not None}
        alone = {letter: connection.verdicts for letter, connection in found.items()}
        directions = (self._direction(paired, 0, found, alone), self._direction(paired, 1, found, alone))
        names = [_name_in(found["a"], each.source) for each in paired.directions]
        verdicts = {name: each.verdict for name, each in zip(names, directions, strict=True)}
        # Choose the connection's verdict like that of any connection.
        chosen = choose_direction(found["a"], verdicts)
        first_end = names[0][0]
        return JudgedConnection(
            paired.number,
            {letter: connection.id for letter, connection in found.items()},
            (role_of(found["a"], first_end), role_of(found["a"], "b" if first_end == "a" else "a")),
            directions,
            0 if chosen is directions[0].verdict else 1,
        )

    def _direction(
        self,
        paired: PairedConnection,
        index: int,
        found: Mapping[str, Connection],
        alone: Mapping[str, Mapping[DirectionName, Verdict]],
    ) -> JudgedDirection:
        direction = paired.directions[index]
        near, far = direction.leaves_at, _OTHER[direction.leaves_at]
        names = {
            "a": _name_in(found["a"], direction.source),
            "b": _name_in(found["b"], direction.source_in_b),
        }
        data = {letter: _data_of(connection, names[letter]) for letter, connection in found.items()}
        own = {letter: verdicts[names[letter]] for letter, verdicts in alone.items()}
        base = far if own[near].limit == "capture" and own[far].limit != "capture" else near
        receiver = found[far].budget[names[far]] if base == near and data[far].view == "receiver" else None
        crossing = _crossing(direction, paired.directions[1 - index], data[far], receiver)
        connection = found[base]
        verdict = judge_directions(connection, connection.findings, {names[base]: crossing})[names[base]]
        return JudgedDirection(
            index,
            names,
            verdict,
            base,
            crossing.corrected(connection.budget[names[base]]),
            own,
            View.of(near, data[near]),
            View.of(far, data[far]),
        )

    @cached_property
    def _places(self) -> dict[str, dict[int, int]]:
        """Index each analysis' connections by the number of their first frame."""
        return {
            letter: {int(frame): id for id, frame in enumerate(analysis.connections.column("first_frame").tolist())}
            for letter, analysis in self.analyses.items()
        }


def _crossing(direction: PairedDirection, back: PairedDirection, far: Direction, receiver: Budget | None) -> Crossing:
    delay, back_delay = direction.delay, back.delay
    shifts = [each for each in back.changes if each.field == "window_scale" and isinstance(each.left_as, int)]
    return Crossing(
        near=direction.leaves_at,
        far=_OTHER[direction.leaves_at],
        known=direction.sent - direction.unknown,
        lost=direction.lost,
        back_known=back.sent - back.unknown,
        back_lost=back.lost,
        retransmissions=direction.retransmissions,
        for_lost=direction.resent.lost,
        for_lost_acks=direction.resent.ack_lost,
        needless=direction.resent.needless,
        for_refused=direction.resent.refused,
        late=direction.late,
        queue_ns=None if delay is None else delay.mean_ns - delay.least_ns,
        back_queue_ns=None if back_delay is None else back_delay.mean_ns - back_delay.least_ns,
        longest_queue_ns=None if delay is None else delay.most_ns - delay.least_ns,
        queue_before_loss_ns=(
            None if delay is None or delay.before_loss_ns is None else delay.before_loss_ns - delay.least_ns
        ),
        round_trip_ns=None if delay is None or back_delay is None else delay.least_ns + back_delay.least_ns,
        is_at_receiver=far.view == "receiver",
        receiver=receiver,
        shifts=(int(shifts[0].left_as or 0), int(shifts[0].came_as or 0)) if shifts else (0, 0),
    )


def _name_in(connection: Connection, source: Endpoint) -> DirectionName:
    """Return an analysis' name for the direction from an end."""
    return "a_to_b" if connection.a == source else "b_to_a"


def _data_of(connection: Connection, name: str) -> Direction:
    return connection.a_to_b if name == "a_to_b" else connection.b_to_a
