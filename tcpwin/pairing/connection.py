"""One connection that both captures have, and each of its directions."""

from __future__ import annotations

from dataclasses import dataclass

from tcpwin.analysis import Endpoint


@dataclass(frozen=True, slots=True)
class Delay:
    """Time on the way by one clock, as uncertain as the clocks' offset.

    Attributes:
        before_loss_ns: mean of the packets that came last before those that were lost; None where none was, or nothing
            came after them. Near `most_ns`, a full queue dropped them.
    """

    least_ns: int
    mean_ns: int
    most_ns: int
    before_loss_ns: int | None = None

    @property
    def queue_ns(self) -> int:
        """The most that a packet took longer than the quickest."""
        return self.most_ns - self.least_ns


@dataclass(frozen=True, slots=True)
class Resent:
    """Retransmissions by what made them necessary, or not.

    Attributes:
        lost: the copy before was lost on the way.
        ack_lost: it came, and the ACKs that said so were lost.
        needless: the receiver had the bytes, and no ACK was lost.
        refused: the copy before came to the second point and was dropped after it, by the receiver or on the way to it.
        unknown: cannot be told.
    """

    lost: int
    ack_lost: int
    needless: int
    refused: int
    unknown: int


@dataclass(frozen=True, slots=True)
class Change:
    """A field that was changed on the way.

    Attributes:
        field: its name; ``sequence`` and ``acknowledgment`` where a firewall rewrites the numbers, ``source`` and
            ``destination`` where NAT translates address or port.
        packets: that it was changed in; None of what holds for all.
        frame_a, frame_b: the first of them; 0 where no packet is known in both captures.
        left_as, came_as: in that packet; None where the field was absent. Of ``source`` and ``destination`` address and
            port as text; of ``sequence`` and ``acknowledgment`` what is added.
    """

    field: str
    packets: int | None
    frame_a: int
    frame_b: int
    left_as: int | str | None
    came_as: int | str | None

    @property
    def rule(self) -> str | None:
        """The rule of `tcpwin check` that can only suspect this from one capture; both captures make it certain."""
        if self.field != "window_scale":
            return None
        return "TW102" if self.came_as is None else "TW103"


@dataclass(frozen=True, slots=True)
class PairedDirection:
    """One direction of a connection that both captures have.

    `sent` is the sum of `delivered`, `lost` and `unknown`; those `late` and `altered` are among the delivered.

    Attributes:
        connection, index: number of the connection, and 0 or 1.
        source, target: as capture a has them; `source_in_b` and `target_in_b` as capture b has them.
        leaves_at: the capture that its packets pass first, ``a`` or ``b``.
        unit: ``frame``; ``segment`` where offload cut the bytes into other frames in one capture than in the other.
        sent: packets that passed the first point.
        delivered: of these passed the second too, as its capture or the receiver's acknowledgments prove.
        lost: did not.
        late: arrived after one that had left later.
        duplicated: came to the second point once more than they passed the first.
        unknown: cannot be told: see `outside`, `unseen` and `in_neither`.
        outside: of the unknown, left while the other capture was not running, or may not have been.
        unseen: of the unknown, are not in a capture that is known to have gaps.
        in_neither: of the unknown, are in neither capture; the sender's IP ids count them.
        missed_at_source, missed_at_target: passed that point and are not in its capture.
        captured_twice: stand a second time in the first capture.
        injected: came from in between: resets that never left.
        retransmissions: packets of the first capture with bytes that it had before.
        resent: the same by why they were sent: see Resent.
        altered: delivered with a changed field, beside what holds for all; `changes` says which.
        bytes: payload in the first capture, copies included.
        hops: fewest and most routers between the two points, by the time to live.
        delay: None where no packet was paired.
        lost_frames: of the lost, the first 64 or so, in the capture where they left.
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
        """Lost packets as a share of those whose fate is known."""
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
        first_frame_a, first_frame_b: its first in each capture.
        directions: first that of the client, where its SYN was seen, or of the first packet.
    """

    number: int
    first_frame_a: int
    first_frame_b: int
    directions: tuple[PairedDirection, PairedDirection]

    @property
    def lost(self) -> int:
        """Packets lost in both directions."""
        return sum(direction.lost for direction in self.directions)

    @property
    def unknown(self) -> int:
        """Packets of both directions of which it cannot be told."""
        return sum(direction.unknown for direction in self.directions)
