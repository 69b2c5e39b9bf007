"""One connection's socket samples, compared with the capture at the same time.

In: a connection, the samples of its sockets and the offset of their clock. Out: JoinedSample, in time order. The
packets' values are ranges over the time in which the kernel may have read the socket; a kernel value outside its range
is reported as a disagreement.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcpwin.analysis import MeasuredConnection
from tcpwin.hosts.clock import READ_NS, ClockOffset
from tcpwin.hosts.socket import SocketSample
from tcpwin.hosts.socket_track import SocketTrack, known_count
from tcpwin.hosts.steps import Seen, Steps

Times = tuple[int, int, int]
"""Earliest, likely and latest time, by the capture's clock."""
MAX_UNCERTAINTY_NS = 10_000_000_000
"""With more uncertainty, packets and samples are not compared."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A kernel value that contradicts the packets of that time."""

    name: str
    kernel: int
    packets: Seen


@dataclass(frozen=True, slots=True)
class Limits:
    """Growth of the kernel's chronographs (`busy`, `rwnd_limited`, `sndbuf_limited`) since the previous sample.

    Attributes:
        window_limited_ns: how long, according to the packets, a full segment did not fit the peer's window meanwhile;
            None if the capture does not span that time.
    """

    elapsed_ns: int
    busy_ns: int
    rwnd_limited_ns: int
    sndbuf_limited_ns: int
    window_limited_ns: int | None


@dataclass(frozen=True, slots=True)
class JoinedSample:
    """One sample of a connection's socket, with the capture's view of the same time.

    Attributes:
        side: whose socket it is: ``a`` or ``b``.
        time_ns: time by the capture's clock; None if the sample has no time.
        sample: the kernel's sample.
        cwnd_bytes: the kernel's congestion window, segments × MSS.
        flight_bytes: this side's data in flight, in its own view.
        peer_window_bytes: the window that this side may fill, compared with the kernel's `snd_wnd_bytes`.
        own_window_bytes: the window that this side offers, compared with `rcv_wnd_bytes`.
        acked_bytes, received_bytes: compared with `bytes_acked` and `bytes_received`.
        limits: growth since the previous sample; None for the first.
        disagreements: kernel values outside the packets' range.
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
    """Compare each sample of one side's socket with the capture."""
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
            # Data known to the host passed the capture point up to a round trip earlier; data it sent passes later.
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
    # A kernel before 5.4 has no tcpi_snd_wnd, and ss before 5.18 does not print it: absent does not mean zero.
    return value or None


def _limits(
    before: SocketSample | None, sample: SocketSample, clock: ClockOffset, track: SocketTrack, is_comparable: bool
) -> Limits | None:
    if before is None or before.time_ns is None or sample.time_ns is None or sample.time_ns <= before.time_ns:
        return None
    if sample.busy_ns is None and known_count(sample, "bytes_acked") not in (0, 1):
        # A kernel before 4.10 has no chronographs: for a socket that sent data, absent does not mean zero.
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
    """Count the samples that disagree with the packets, by value name."""
    counted: dict[str, int] = {}
    for each in joined:
        for disagreement in each.disagreements:
            counted[disagreement.name] = counted.get(disagreement.name, 0) + 1
    return counted
