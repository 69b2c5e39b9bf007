"""Settings of one simulated connection: hosts, options, the application, the path and its faults."""

from __future__ import annotations

from dataclasses import dataclass, field

from simulator.clock import MILLISECOND_NS


@dataclass(frozen=True, slots=True)
class Link:
    """One direction of the path. Shares refer to all packets, times are nanoseconds.

    Attributes:
        rate_bps: of its bottleneck, none if it is never busy.
        queue_packets: capacity of the queue before the bottleneck.
        bursts: share of packets that begin a burst of losses, and its length in packets.
        reorder: share of packets that are late, each by up to `reorder_ns`.
        duplicate: share of packets delivered twice, the second up to `duplicate_ns` later.
        outages: times (start, end) in which every packet is lost.
        holds: times (start, end) in which packets wait for the end.
    """

    delay_ns: int = 10 * MILLISECOND_NS
    rate_bps: int | None = None
    queue_packets: int = 1_000
    loss: float = 0.0
    bursts: tuple[float, int] = (0.0, 0)
    reorder: float = 0.0
    reorder_ns: int = 0
    duplicate: float = 0.0
    duplicate_ns: int = 0
    outages: tuple[tuple[int, int], ...] = ()
    holds: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Receiving:
    """The host that receives the data.

    Attributes:
        quick_acks: segments acknowledged immediately at the start.
        stalls: times (start, end) in which the application reads nothing.
        shrinks: in a stall memory runs out: the window closes, and data in flight is dropped (Linux >= 6.6).
    """

    buffer_bytes: int = 1 << 20
    delayed_ack_ns: int = 40 * MILLISECOND_NS
    quick_acks: int = 16
    stalls: tuple[tuple[int, int], ...] = ()
    shrinks: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that determines a run.

    Attributes:
        sender: the side that sends the data, a or b.
        wrap: sequence numbers pass 2^32 within the data.
        mss: the option of both sides.
        beta: the share of the congestion window kept after a loss.
        tick_ns: of both hosts' timers (1/HZ).
        writes: (time after the handshake, bytes) of the application; then it closes.
        request_bytes: sent first by the receiver of the data.
        drops: (side, ordinal, transmission) of segments lost in any case; ordinal -1 is the SYN, -2 the segment with
            the FIN.
        lags: (side, ordinal, transmission) of delayed segments, and their delays.
        capture_loss: share of the packets that a capture misses.
    """

    seed: int = 0
    sack: bool = True
    timestamps: bool = True
    wrap: bool = False
    sender: str = "a"
    mss: int = 1460
    initial_window: int = 10
    no_delay: bool = True
    beta: float = 0.7
    tick_ns: int = 4 * MILLISECOND_NS
    tail_loss_probe: bool = True
    writes: tuple[tuple[int, int], ...] = ((0, 100 * 1460),)
    request_bytes: int = 0
    receiving: Receiving = field(default_factory=Receiving)
    data_link: Link = field(default_factory=Link)
    ack_link: Link = field(default_factory=Link)
    drops: frozenset[tuple[str, int, int]] = frozenset()
    lags: frozenset[tuple[tuple[str, int, int], int]] = frozenset()
    capture_loss: float = 0.0

    @property
    def segment_bytes(self) -> int:
        """Return the payload of a full segment: the MSS minus the timestamps option."""
        return self.mss - 12 * self.timestamps

    @property
    def receiver(self) -> str:
        return "b" if self.sender == "a" else "a"

    @property
    def data_bytes(self) -> int:
        return sum(length for _, length in self.writes)
