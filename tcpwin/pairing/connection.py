"""One connection that both captures have, and each of its directions."""

from __future__ import annotations

from dataclasses import dataclass

from tcpwin.analysis import Endpoint


@dataclass(frozen=True, slots=True)
class Delay:
    """One-way delay by one clock, as uncertain as the clocks' offset.

    Attributes:
        before_loss_ns: mean delay of the last packets before losses; None without loss, or if nothing followed. If it
            is near `most_ns`, a full queue dropped them.
    """

    least_ns: int
    mean_ns: int
    most_ns: int
    before_loss_ns: int | None = None

    @property
    def queue_ns(self) -> int:
        """Return the maximum delay above the fastest packet's."""
        return self.most_ns - self.least_ns


@dataclass(frozen=True, slots=True)
class Resent:
    """Retransmissions by cause.

    Attributes:
        lost: the previous copy was lost on the path.
        ack_lost: the previous copy arrived, but its ACKs were lost.
        needless: the receiver had the bytes, and no ACK was lost.
        refused: the previous copy passed the second point and was dropped later, by the receiver or on the path to it.
        unknown: undetermined.
    """

    lost: int
    ack_lost: int
    needless: int
    refused: int
    unknown: int


@dataclass(frozen=True, slots=True)
class Change:
    """A field that was changed on the path.

    Attributes:
        field: its name; ``sequence`` and ``acknowledgment`` where a firewall rewrites the numbers, ``source`` and
            ``destination`` where NAT translates address or port.
        packets: number of changed packets; None if the change applies to all.
        frame_a, frame_b: the first changed packet; 0 if no packet is known in both captures.
        left_as, came_as: values in that packet; None if absent. For ``source`` and ``destination`` address and port as
            text; for ``sequence`` and ``acknowledgment`` the added amount.
    """

    field: str
    packets: int | None
    frame_a: int
    frame_b: int
    left_as: int | str | None
    came_as: int | str | None

    @property
    def rule(self) -> str | None:
        """Return the rule of `tcpwin check` that can only suspect this from one capture."""
        if self.field != "window_scale":
            return None
        return "TW102" if self.came_as is None else "TW103"


@dataclass(frozen=True, slots=True)
class PairedDirection:
    """One direction of a connection that both captures have.

    `sent` is the sum of `delivered`, `lost` and `unknown`; those `late` and `altered` are among the delivered.

    Attributes:
        connection, index: number of the connection, and 0 or 1.
        source, target: ends in capture a; `source_in_b` and `target_in_b` in capture b.
        leaves_at: the capture point that its packets pass first, ``a`` or ``b``.
        unit: ``frame``, or ``segment`` if offload split the bytes differently in the two captures.
        sent: packets that passed the first point.
        delivered: those that also passed the second, proved by its capture or the receiver's acknowledgments.
        lost: those that did not.
        late: those that arrived after a packet that had left later.
        duplicated: those that passed the second point more often than the first.
        unknown: those whose fate is undetermined: see `outside`, `unseen` and `in_neither`.
        outside: unknown because they left while the other capture was (possibly) not running.
        unseen: unknown because they are missing from a capture with known gaps.
        in_neither: unknown because they are in neither capture, counted by the sender's IP ids.
        missed_at_source, missed_at_target: packets that passed that point but are missing from its capture.
        captured_twice: packets that appear twice in the first capture.
        injected: packets that originated between the points: resets that never left.
        retransmissions: packets of the first capture with repeated bytes.
        resent: the same by cause: see Resent.
        altered: delivered with a changed field, apart from changes to all packets; listed in `changes`.
        bytes: payload in the first capture, copies included.
        hops: minimum and maximum routers between the points, by the time to live.
        delay: one-way delay; None if no packet was paired.
        lost_frames: about the first 64 lost frames, in the capture where they left.
    """

    connection: int
    index: int
    source: Endpoint
    target: Endpoint
    source_in_b: Endpoint
    target_in_b: Endpoint
    leaves_at: str
    unit: str
    sent: int
    delivered: int
    lost: int
    late: int
    duplicated: int
    unknown: int
    outside: int
    unseen: int
    in_neither: int
    missed_at_source: int
    missed_at_target: int
    captured_twice: int
    injected: int
    retransmissions: int
    resent: Resent
    altered: int
    bytes: int
    hops: tuple[int, int] | None
    delay: Delay | None
    changes: tuple[Change, ...]
    lost_frames: tuple[int, ...] = ()

    @property
    def loss(self) -> float | None:
        """Return the lost share of the packets with known fate."""
        known = self.sent - self.unknown
        return self.lost / known if known else None

    @property
    def is_translated(self) -> bool:
        """Whether an address or a port differs between the captures."""
        return (self.source, self.target) != (self.source_in_b, self.target_in_b)


@dataclass(frozen=True, slots=True)
class PairedConnection:
    """One connection that both captures have.

    Attributes:
        number: from 0, in the order in which they were paired.
        first_frame_a, first_frame_b: its first frame in each capture.
        directions: first the client's, if its SYN was seen, otherwise the first packet's.
    """

    number: int
    first_frame_a: int
    first_frame_b: int
    directions: tuple[PairedDirection, PairedDirection]

    @property
    def lost(self) -> int:
        """Return the packets lost in both directions."""
        return sum(direction.lost for direction in self.directions)

    @property
    def unknown(self) -> int:
        """Return the packets of both directions with unknown fate."""
        return sum(direction.unknown for direction in self.directions)
