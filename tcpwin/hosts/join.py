"""One connection's socket samples beside what the capture says of the same time.

In: a connection, the samples of its sockets and the offset of their clock. Out: JoinedSample, in order of time. Values
of packets come with a range over the time in which the kernel may have read the socket: a kernel's value outside is a
disagreement, and is reported.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcpwin.analysis import MeasuredConnection
from tcpwin.hosts.clock import READ_NS, ClockOffset
from tcpwin.hosts.socket import SocketSample
from tcpwin.hosts.socket_track import SocketTrack, known_count
from tcpwin.hosts.steps import Seen, Steps

Times = tuple[int, int, int]
"""The earliest, the likely and the latest time, by the capture's clock."""
MAX_UNCERTAINTY_NS = 10_000_000_000
"""Beyond it packets and samples are not compared."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A value of the kernel that the packets of that time do not allow."""

    name: str
    kernel: int
    packets: Seen


@dataclass(frozen=True, slots=True)
class Limits:
    """What the kernel's chronographs (`busy`, `rwnd_limited`, `sndbuf_limited`) counted since the sample before.

    Attributes:
        window_limited_ns: how long the packets show the peer's window without room for a full segment meanwhile; None
            where the capture does not span that time.
    """

    elapsed_ns: int
    busy_ns: int
    rwnd_limited_ns: int
    sndbuf_limited_ns: int
    window_limited_ns: int | None


@dataclass(frozen=True, slots=True)
class JoinedSample:
    """One sample of a connection's socket, and the capture's view of its time.

    Attributes:
        side: whose socket it is: ``a`` or ``b``.
        time_ns: by the capture's clock; None where the sample has no time.
        sample: what the kernel said.
        cwnd_bytes: the kernel's congestion window, segments × MSS.
        flight_bytes: of this side's data, as this side sees it.
        peer_window_bytes: the window that this side may fill: beside the kernel's `snd_wnd_bytes`.
        own_window_bytes: the window that this side offers: beside `rcv_wnd_bytes`.
        acked_bytes, received_bytes: beside `bytes_acked` and `bytes_received`.
        limits: since the sample before; None for the first.
        disagreements: values of the kernel outside the packets' range.
    """

    side: str
    time_ns: int | None
    sample: SocketSample
    cwnd_bytes: int | None
    flight_bytes: Seen | None
    peer_window_bytes: Seen | None
    own_window_bytes: Seen | None
    acked_bytes: Seen | None
    received_bytes: Seen | None
    limits: Limits | None
    disagreements: tuple[Disagreement, ...]


def join(
    connection: MeasuredConnection, side: str, samples: list[SocketSample], clock: ClockOffset, track: SocketTrack
) -> list[JoinedSample]:
    """Put each sample of one side's socket beside the capture."""
    joined = []
    before: SocketSample | None = None
    uncertainty_ns = clock.uncertainty_ns
    is_comparable = uncertainty_ns is not None and uncertainty_ns <= MAX_UNCERTAINTY_NS
    way_ns = track.round_trip_ns
    for sample in samples:
        time_ns = None if sample.time_ns is None else sample.time_ns + clock.offset_ns
        arrived: Times | None = None
        left: Times | None = None
        if time_ns is not None and is_comparable and connection.start_ns <= time_ns <= connection.end_ns:
            doubt_ns = uncertainty_ns or 0
            # What the host knows came past the capture point up to a round trip earlier; what it sent comes later.
            arrived = (time_ns - doubt_ns - way_ns, time_ns - way_ns // 2, time_ns + doubt_ns + READ_NS)
            left = (time_ns - doubt_ns, time_ns + way_ns // 2, time_ns + doubt_ns + way_ns + READ_NS)
        joined.append(_join_one(side, time_ns, sample, before, clock, track, arrived, left, is_comparable))
        before = sample
    return joined


def _join_one(
    side: str,
    time_ns: int | None,
    sample: SocketSample,
    before: SocketSample | None,
    clock: ClockOffset,
    track: SocketTrack,
    arrived: Times | None,
    left: Times | None,
    is_comparable: bool,
) -> JoinedSample:
    whole = (arrived[0], arrived[1], left[2]) if arrived and left else None
    acked = track.acked_bytes(*arrived) if arrived else None
    received = track.received_bytes(*whole) if whole else None
    peer_window = _between(track.peer_window, arrived)
    own_window = _between(track.own_window, left)
    flight = _between(track.sender_flight or track.flight, whole)
    checks: tuple[tuple[str, int | None, Seen | None], ...] = (
        ("snd_wnd_bytes", _positive(sample.snd_wnd_bytes), peer_window),
        ("bytes_acked", known_count(sample, "bytes_acked"), acked),
        ("bytes_received", known_count(sample, "bytes_received"), received),
    )
    disagreements = tuple(
        Disagreement(name, kernel, packets)
        for name, kernel, packets in checks
        if kernel is not None and packets is not None and not packets.holds(kernel)
    )
    return JoinedSample(
        side=side,
        time_ns=time_ns,
        sample=sample,
        cwnd_bytes=sample.cwnd_bytes,
        flight_bytes=flight,
        peer_window_bytes=peer_window,
        own_window_bytes=own_window,
        acked_bytes=acked,
        received_bytes=received,
        limits=_limits(before, sample, clock, track, is_comparable),
        disagreements=disagreements,
    )


def _between(steps: Steps | None, times: Times | None) -> Seen | None:
    return steps.seen(*times) if steps is not None and times is not None else None


def _positive(value: int | None) -> int | None:
    # A kernel before 5.4 has no tcpi_snd_wnd, and ss before 5.18 does not print it: absent is not zero.
    return value or None


def _limits(
    before: SocketSample | None, sample: SocketSample, clock: ClockOffset, track: SocketTrack, is_comparable: bool
) -> Limits | None:
    if before is None or before.time_ns is None or sample.time_ns is None or sample.time_ns <= before.time_ns:
        return None
    if sample.busy_ns is None and known_count(sample, "bytes_acked") not in (0, 1):
        # A kernel before 4.10 has no chronographs: of a socket that sent data, what it does not say is not zero.
        return None
    names = ("busy_ns", "rwnd_limited_ns", "sndbuf_limited_ns")
    grown = [(sample.count(name) or 0) - (before.count(name) or 0) for name in names]
    if min(grown) < 0:
        return None
    limited = None
    if is_comparable:
        limited = track.limited_ns(before.time_ns + clock.offset_ns, sample.time_ns + clock.offset_ns)
    return Limits(sample.time_ns - before.time_ns, grown[0], grown[1], grown[2], limited)


def count_disagreements(joined: list[JoinedSample]) -> dict[str, int]:
    """How many samples disagree with the packets, by name of the value."""
    counted: dict[str, int] = {}
    for each in joined:
        for disagreement in each.disagreements:
            counted[disagreement.name] = counted.get(disagreement.name, 0) + 1
    return counted
