"""The capture's view of one connection, from the host at one of its ends.

In: series of both directions. Out: per sample of the host's socket, bounds of the clock offset, and the capture's
window, flight and bytes at that time. Counts of bytes are the kernel's: SYN and FIN as `tcp_info` has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tcpwin.analysis import DirectionName, SeriesName, View
from tcpwin.hosts.clock import CONTRADICTION, Bounds, ClockOffset
from tcpwin.hosts.socket import SocketSample
from tcpwin.hosts.steps import Seen, Steps

OPEN_TO_SEND = ("ESTAB", "CLOSE-WAIT")
"""States in which no FIN was sent."""
SCANNED_SAMPLES = 64
SCANNED_OFFSETS = 8192
FIN_QUEUED = ("FIN-WAIT-1", "CLOSING", "LAST-ACK")
FIN_RECEIVED = ("CLOSE-WAIT", "LAST-ACK", "CLOSING")
COUNTED_SINCE = ("bytes_acked", "bytes_received", "segs_out", "segs_in")
MAX_COUNT = 1 << 62
"""Maximum plausible byte count."""
MIN_PROGRESS_BYTES = 20_000
"""Bytes that samples must span to align the sequence numbers of a capture without SYN."""


@dataclass(frozen=True, slots=True)
class Base:
    """Difference between the capture's and the kernel's byte counts.

    Attributes:
        bytes: capture's count − kernel's.
        error_bytes: maximum error, 0 if the SYN was captured.
    """

    bytes: int
    error_bytes: int


class SocketTrack:
    """One end of a connection. `side` is the host's: ``a`` or ``b``."""

    def __init__(self, view: View, side: str) -> None:
        self._view = view
        connection = self.connection = view.connection
        self.side = side
        self.peer = "b" if side == "a" else "a"
        out: DirectionName = "a_to_b" if side == "a" else "b_to_a"
        back: DirectionName = "b_to_a" if side == "a" else "a_to_b"
        self.out = connection.a_to_b if side == "a" else connection.b_to_a
        self.back = connection.b_to_a if side == "a" else connection.a_to_b
        self.sent, self.acked = self._steps("sequence", out), self._steps("acknowledged", out)
        self.received, self.receipted = self._steps("sequence", back), self._steps("acknowledged", back)
        self.flight, self.sender_flight = self._steps("flight", out), self._steps("sender_flight", out)
        self.peer_window, self.own_window = self._steps("receive_window", out), self._steps("receive_window", back)
        self.peer_edge = self._steps("right_edge", out)
        self.peer_raw, self.own_raw = self._steps("window_raw", out), self._steps("window_raw", back)
        # A SYN counts as one byte in the capture. An active opener's bytes_acked counts it too (tcp_snd_una_update),
        # bytes_received never does.
        self.acked_base = Base(int(side == "b"), 0) if self.out.syn_seen else None
        self.received_base = Base(1, 0) if self.back.syn_seen else None
        self.sent_base = Base(1, 0) if self.out.syn_seen else None

    def _steps(self, name: SeriesName, direction: DirectionName) -> Steps | None:
        series = self._view.series(name, direction=direction)
        return Steps(series) if len(series) else None

    @property
    def round_trip_ns(self) -> int:
        """Return the round trip between capture point and host, or 0 if unknown."""
        handshake = self.connection.handshake_rtt_a_ns if self.side == "a" else self.connection.handshake_rtt_b_ns
        known = [value for value in (handshake, self.back.rtt_min_ns) if value is not None]
        return min(known, default=0)

    def find_bases(self, samples: list[SocketSample], clock: ClockOffset | None = None) -> None:
        """Align the counts with the sequence numbers of a capture without SYN, if the samples allow it.

        `clock` is the offset, if already known.
        """
        if self.acked_base is None and self.acked is not None:
            closing = {_acked_at_close(each) for each in samples} if self.out.fin else set()
            self.acked_base = _closing_base(closing, self.sent) or _find_base(
                [(each.time_ns, known_count(each, "bytes_acked")) for each in samples], self.acked, clock
            )
        if self.received_base is None and self.received is not None:
            closing = {_received_at_close(each) for each in samples} if self.back.fin else set()
            self.received_base = _closing_base(closing, self.received) or _find_base(
                [(each.time_ns, known_count(each, "bytes_received")) for each in samples], self.received, clock
            )

    def bounds(self, sample: SocketSample) -> Bounds:
        """Return the bounds of the clock offset from one sample."""
        if sample.time_ns is None:
            return Bounds(None, None)
        if self._is_of_another(sample):
            return CONTRADICTION
        earliest, latest = [], []
        acked, received = known_count(sample, "bytes_acked"), known_count(sample, "bytes_received")
        if acked is not None and self.acked_base is not None and self.acked is not None:
            earliest.append(self.acked.reached_ns(acked + self.acked_base.bytes - self.acked_base.error_bytes))
        if received is not None and self.received_base is not None:
            base = self.received_base
            if self.received is not None:
                earliest.append(self.received.reached_ns(received + base.bytes - base.error_bytes))
            if self.receipted is not None:
                latest.append(self.receipted.exceeded_ns(received + base.bytes + base.error_bytes))
        sent = known_count(sample, "bytes_sent")
        if sent is not None and sample.state in OPEN_TO_SEND and self.sent_base is not None and self.sent is not None:
            first_sent = sent - (known_count(sample, "bytes_retrans") or 0)
            latest.append(self.sent.exceeded_ns(first_sent + self.sent_base.bytes))
        elif acked is not None and self.acked_base is not None and self.acked is not None:
            left_ns = self.acked.exceeded_ns(acked + self.acked_base.bytes + self.acked_base.error_bytes)
            latest.append(None if left_ns is None else left_ns + self.round_trip_ns)
        least = max((ns for ns in earliest if ns is not None), default=None)
        most = min((ns for ns in latest if ns is not None), default=None)
        return Bounds(
            None if least is None else least - sample.time_ns,
            None if most is None else most - sample.time_ns,
            sample.time_ns,
        )

    def _is_of_another(self, sample: SocketSample) -> bool:
        """Whether it counts more bytes than a completely captured connection (SYN and FIN) had."""
        return any(
            direction.fin
            and direction.syn_seen
            and base is not None
            and steps is not None
            and (known_count(sample, name) or 0) + base.bytes > steps.greatest
            for name, direction, base, steps in (
                ("bytes_acked", self.out, self.acked_base, self.sent),
                ("bytes_received", self.back, self.received_base, self.received),
            )
        )

    def acked_bytes(self, first_ns: int, at_ns: int, last_ns: int) -> Seen | None:
        """Return the possible range of `bytes_acked` between two times."""
        return _counted(self.acked, self.acked_base, first_ns, at_ns, last_ns)

    def received_bytes(self, first_ns: int, at_ns: int, last_ns: int) -> Seen | None:
        """Return the possible range of `bytes_received`: from the acknowledged to the arrived bytes."""
        least = _counted(self.receipted, self.received_base, first_ns, at_ns, last_ns)
        most = _counted(self.received, self.received_base, first_ns, at_ns, last_ns)
        return Seen(most.value, least.least, most.most) if least is not None and most is not None else None

    def limited_ns(self, first_ns: int, last_ns: int) -> int | None:
        """Return how long a full segment did not fit the peer's window, with data in flight or a window below one
        segment.
        """
        if self._limited is None:
            return None
        times, total_ns, is_limited = self._limited
        if not times[0] <= first_ns <= last_ns <= times[-1]:
            return None
        bounds = np.array([first_ns, last_ns], dtype=np.int64)
        places = np.searchsorted(times, bounds, side="right") - 1
        at_bounds = total_ns[places] + np.where(is_limited[places], bounds - times[places], 0)
        return int(at_bounds[1] - at_bounds[0])

    @cached_property
    def _limited(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]] | None:
        """Return times, the accumulated time with a short window, and whether it is short from then on."""
        if self.peer_edge is None or self.sent is None or self.flight is None or self.peer_window is None:
            return None
        acked = self.acked.times if self.acked is not None else self.sent.times
        times = np.unique(np.concatenate([self.sent.times, self.peer_edge.times, acked]))
        room = self.peer_edge.values_at(times) - self.sent.values_at(times)
        mss = max(self.out.mss_bytes, 1)
        # With nothing in flight a window below a segment still holds the sender back (RFC 9293 §3.8.6.2.1).
        is_held = (self.flight.values_at(times) > 0) | (self.peer_window.values_at(times) < mss)
        is_limited = (room < mss) & is_held
        lengths = np.where(is_limited[:-1], np.diff(times), 0)
        return times, np.concatenate([[0], np.cumsum(lengths)]), is_limited


def _counted(steps: Steps | None, base: Base | None, first_ns: int, at_ns: int, last_ns: int) -> Seen | None:
    values = steps.seen(first_ns, at_ns, last_ns) if steps is not None and base is not None else None
    if values is None or base is None:
        return None
    value = None if values.value is None else values.value - base.bytes
    return Seen(value, values.least - base.bytes - base.error_bytes, values.most - base.bytes + base.error_bytes)


def known_count(sample: SocketSample, name: str) -> int | None:
    """Return a byte count, or None if implausible or not provided by the kernel.

    Absent means zero only if counts of the same age (Linux 4.1 and 4.2) are present: a connected socket has segments.
    """
    value: int | None = getattr(sample, name)
    if value is None and any(getattr(sample, each) is not None for each in COUNTED_SINCE):
        value = sample.count(name)
    return value if value is not None and 0 <= value < MAX_COUNT else None


def _acked_at_close(sample: SocketSample) -> int | None:
    """Return `bytes_acked` after the FIN is acknowledged: Send-Q is write_seq − SND.UNA (tcp_diag_get_info)."""
    acked, queued = known_count(sample, "bytes_acked"), sample.send_q_bytes
    if acked is None or queued is None or not 0 <= queued < 1 << 32 or sample.state not in FIN_QUEUED:
        return None
    return acked + queued


def _received_at_close(sample: SocketSample) -> int | None:
    """Return `bytes_received` including the peer's FIN (tcp_rcv_nxt_update)."""
    return known_count(sample, "bytes_received") if sample.state in FIN_RECEIVED else None


def _closing_base(closing: set[int | None], steps: Steps | None) -> Base | None:
    """Return the difference of the final counts, including the FIN, if all samples agree."""
    known = closing - {None}
    [total] = known if len(known) == 1 else [None]
    if total is None or steps is None:
        return None
    return Base(int(steps.values_at(np.array([steps.end_ns]))[0]) - total, 0)


def _find_base(counted: list[tuple[int | None, int | None]], steps: Steps, clock: ClockOffset | None) -> Base | None:
    """Return the difference of two counts that grew in parallel.

    It applies at the clock's offset, or at 0, if the counts match there, else at the offset of the best match. Its
    error covers all equally good offsets: a steady transfer looks the same at any.
    """
    known = [(time_ns, count) for time_ns, count in counted if time_ns is not None and count is not None]
    if len(known) < 3:
        return None
    stride = max(len(known) // SCANNED_SAMPLES, 1)
    times = np.array([time_ns for time_ns, _ in known[::stride]], dtype=np.int64)
    counts = np.array([count for _, count in known[::stride]], dtype=np.int64)
    # Each step of the capture, aligned with the sample in the middle of the growth, is a candidate offset.
    middle = int(np.argmin(np.abs(counts - (counts[0] + counts[-1]) // 2)))
    offsets = steps.times[:: max(len(steps) // SCANNED_OFFSETS, 1)] - times[middle]
    expected_ns = 0
    if clock is not None and clock.least_ns is not None and clock.most_ns is not None:
        expected_ns = clock.offset_ns
        offsets = offsets[(offsets >= clock.least_ns) & (offsets <= clock.most_ns)]
    likely = _spread(times, counts, steps, expected_ns)
    found = [_spread(times, counts, steps, int(each)) for each in offsets]
    alike = [each for each in (likely, *found) if each is not None and _is_alike(each)]
    if not alike:
        return None
    # Within a step or two of the capture's count all offsets are equally good.
    slack = 2 * int(np.quantile(np.diff(steps.values_at(steps.times)), 0.95)) if len(steps) > 1 else 0
    limit = min(each[1] for each in alike) + slack
    alike = [each for each in alike if each[1] <= limit]
    chosen = likely if likely in alike and likely is not None else min(alike)
    error = max(abs(each[3] - chosen[3]) + each[1] for each in alike)
    return Base(chosen[3], error)


def _is_alike(spread: tuple[float, int, int, int]) -> bool:
    ratio, _, progress, _ = spread
    return progress >= MIN_PROGRESS_BYTES and ratio <= 0.05


def _spread(
    times: NDArray[np.int64],
    counts: NDArray[np.int64],
    steps: Steps,
    offset_ns: int,
) -> tuple[float, int, int, int] | None:
    """Measure how similarly two counts grew at a clock offset.

    Returns the spread of their difference as a share of the growth, half that spread, the growth, and the middle of the
    difference; None if too few samples fall into the capture.
    """
    moved = times + offset_ns
    inside = (moved >= steps.start_ns) & (moved <= steps.end_ns)
    if inside.sum() < 3:
        return None
    differences = steps.values_at(moved[inside]) - counts[inside]
    progress = int(counts[inside].max() - counts[inside].min())
    least, most = int(differences.min()), int(differences.max())
    if progress <= 0:
        return None
    return ((most - least) / progress, (most - least + 1) // 2, progress, (least + most) // 2)
