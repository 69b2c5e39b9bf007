"""Round trips: send times of data in flight, and a Linux sender's timeout (rules 5.4, 6.5)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from twin.intervals import Intervals
from twin.segments import Segment
from twin.sequence import is_earlier

SECOND_NS = 10**9
RTO_INITIAL_NS = SECOND_NS
"""RFC 6298 §2.1."""
RTO_MAX_NS = 120 * SECOND_NS
"""TCP_RTO_MAX (include/net/tcp.h)."""
RTO_MIN_US = 200_000
"""TCP_RTO_MIN: the least deviation in the timeout, not the least timeout."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A segment that was sent once and is unacknowledged."""

    left: int
    right: int
    time_ns: int
    tsval: int | None


@dataclass(frozen=True, slots=True)
class Covered:
    """Send times of the oldest and newest segment covered by one ACK."""

    oldest_ns: int
    newest_ns: int
    is_certain: bool = True
    """No copy later than the one echoed can have caused the ACK."""


@dataclass(slots=True)
class RttEstimator:
    """tcp_rtt_estimator and __tcp_set_rto (net/ipv4/tcp_input.c), in the kernel's units: RFC 6298 §2 in integers."""

    srtt_8us: int = 0
    mdev_4us: int = 0
    mdev_max_us: int = 0
    rttvar_us: int = 0
    rtt_seq: int = 0
    """SND.MAX at the start of the round trip over which the deviation's maximum is taken."""

    def sample(self, elapsed_ns: int, una: int, nxt: int) -> None:
        sample_us = elapsed_ns // 1000
        if not self.srtt_8us:
            self.srtt_8us, self.mdev_4us = max(sample_us << 3, 1), sample_us << 1
            self.mdev_max_us = self.rttvar_us = max(self.mdev_4us, RTO_MIN_US)
            self.rtt_seq = nxt
            return
        error_us = sample_us - (self.srtt_8us >> 3)
        self.srtt_8us = max(self.srtt_8us + error_us, 1)
        growth_us = abs(error_us) - (self.mdev_4us >> 2)
        # A falling round trip must not raise the deviation as much as a rising one.
        self.mdev_4us += growth_us >> 3 if error_us < 0 < growth_us else growth_us
        self.mdev_max_us = max(self.mdev_max_us, self.mdev_4us)
        self.rttvar_us = max(self.rttvar_us, self.mdev_max_us)
        if una > self.rtt_seq:
            self.rttvar_us -= (self.rttvar_us - self.mdev_max_us) >> 2
            self.mdev_max_us = RTO_MIN_US
            self.rtt_seq = nxt

    @property
    def smoothed_ns(self) -> int | None:
        return (self.srtt_8us >> 3) * 1000 if self.srtt_8us else None

    def timeout_ns(self, further_ns: int) -> int:
        """Return the RTO without back-off of a sender whose round trips are longer than the samples."""
        if self.smoothed_ns is None:
            return RTO_INITIAL_NS
        return min(self.smoothed_ns + self.rttvar_us * 1000 + further_ns, RTO_MAX_NS)


@dataclass(slots=True)
class Ledger:
    """The segments in flight, oldest first."""

    in_flight: deque[Sent] = field(default_factory=deque)
    estimator: RttEstimator = field(default_factory=RttEstimator)
    least_ns: int | None = None
    """The shortest time from a segment to its ACK."""

    def sent(self, left: int, right: int, segment: Segment) -> None:
        self.in_flight.append(Sent(left, right, segment.time_ns, segment.tsval))

    def forget(self) -> None:
        """Forget the times, because it is unclear which copy of the data in flight will be acknowledged."""
        self.in_flight.clear()

    @property
    def oldest_ns(self) -> int | None:
        return self.in_flight[0].time_ns if self.in_flight else None

    def find(self, seq: int) -> Sent | None:
        """Return the segment that contains a byte."""
        return next((sent for sent in self.in_flight if sent.left <= seq < sent.right), None)

    def cover(self, una: int, ack: int, reported: Intervals, spare: int) -> Covered | None:
        """Remove the segments covered by an ACK and return their times, except those reported by SACK.

        Of a segment captured before segmentation each wire segment is acknowledged separately: it is timed although up
        to `spare` bytes of it are still in flight.
        """
        times = []
        while self.in_flight and self.in_flight[0].left < ack:
            first = self.in_flight[0]
            left, right = max(first.left, una), min(first.right, ack)
            if first.right - ack <= spare and reported.overlap(left, right) < right - left:
                times.append(first.time_ns)
            if first.right > ack:
                break
            self.in_flight.popleft()
        return Covered(times[0], times[-1]) if times else None

    def sample(self, covered: Covered, una: int, nxt: int, now_ns: int) -> int | None:
        """Return the round trip of an ACK, from the oldest segment that it covers (Linux's seq_rtt_us)."""
        elapsed_ns = now_ns - covered.oldest_ns
        if elapsed_ns < 0:
            return None
        if not covered.is_certain:
            # The sender uses it anyway (tcp_ack_update_rtt, tcp_rtt_tsopt_us).
            self.estimator.sample(elapsed_ns, una, nxt)
            return None
        shortest_ns = now_ns - covered.newest_ns if now_ns >= covered.newest_ns else elapsed_ns
        self.least_ns = shortest_ns if self.least_ns is None else min(self.least_ns, shortest_ns)
        self.estimator.sample(elapsed_ns, una, nxt)
        return elapsed_ns


@dataclass(slots=True)
class EchoTimer:
    """Measures from a segment to the other side's first echo of its timestamp (RFC 7323 §4)."""

    waiting: deque[tuple[int, int]] = field(default_factory=deque)
    least_ns: int | None = None

    def sent(self, tsval: int, now_ns: int) -> None:
        """Record the first segment with this value."""
        self.waiting.append((tsval, now_ns))

    def echoed(self, tsecr: int, now_ns: int) -> None:
        while self.waiting and not is_earlier(tsecr, self.waiting[0][0]):
            tsval, sent_ns = self.waiting.popleft()
            elapsed_ns = now_ns - sent_ns
            if tsval == tsecr and elapsed_ns >= 0:
                self.least_ns = elapsed_ns if self.least_ns is None else min(self.least_ns, elapsed_ns)
