"""Find the size above which a path drops packets, from the sizes that arrived and from ICMP errors.

In: a case. Out: SizeLimit, or None. Random loss drops segments of any size; a size limit drops all large ones, whose
bytes arrive as soon as they are sent in smaller pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.alive import again_stuck
from tcpwin.limits.evidence.packets import SYN, Packets, Sent, packets_of, sent_of
from tcpwin.limits.finding import Remedy

if TYPE_CHECKING:
    from tcpwin.analysis import IcmpError
    from tcpwin.limits.evidence.packets import Flags, Numbers

HEADERS = {4: 40, 6: 60}
"""Bytes of the IP and TCP headers without options."""
TIMESTAMPS = 12
ETHERNET_MSS = 1460
FEWEST_LOST = 3
FEWEST_FLIGHTS = 3
FEWEST_SUPER = 5
"""Super-segments are retransmitted in pieces whatever lost them, so more of them must be lost."""
LEAST_STUCK_BYTES = 1000
"""Every path carries smaller segments."""
SMALL_LOST_SHARE = 0.2
"""Share of the smaller segments that may be lost too."""
FLIGHT_NS = 10_000_000
FRAMES = 6


class SizeLimit(NamedTuple):
    """Sizes that a path carries, and what the others cost.

    Attributes:
        arrived_bytes: largest payload that arrived after the first loss of a larger one; 0 if none did.
        lost_bytes: smallest payload that never arrived.
        lost, arrived: numbers of larger segments lost and of smaller ones that arrived.
        errors: ICMP errors that refused segments of this direction for their size.
        mtu: the path's MTU by these errors; None without one.
        spans: when bytes of lost segments waited: start and end, disjoint and in order.
        frames: frames of the first lost segments.
        mss: both SYNs' MSS options, the sender's first; -1 for a SYN without one.
        header_bytes: length of the IP and TCP headers.
        after_ns: time with the smaller congestion window that these losses left; 0 if others contributed.
    """

    arrived_bytes: int
    lost_bytes: int
    lost: int
    arrived: int
    errors: tuple[IcmpError, ...]
    mtu: int | None
    spans: tuple[tuple[int, int], ...]
    frames: tuple[int, ...]
    mss: tuple[int, int]
    header_bytes: int
    after_ns: int

    @property
    def waited_ns(self) -> int:
        """Time in which lost bytes waited."""
        return sum(end - start for start, end in self.spans)

    @property
    def cost_ns(self) -> int:
        """`waited_ns` and `after_ns`."""
        return self.waited_ns + self.after_ns

    @property
    def is_super(self) -> bool:
        """Whether segments of the MSS arrived and larger ones, merged by offload, did not."""
        mss = self.mss[1] if self.mss[1] > 0 else ETHERNET_MSS
        return self.lost_bytes > mss and self.arrived_bytes >= mss - TIMESTAMPS

    @property
    def mtu_bounds(self) -> tuple[int, int]:
        """Smallest and largest MTU that the sizes allow."""
        return self.arrived_bytes + self.header_bytes, self.lost_bytes + self.header_bytes - 1


def find_size_limit(case: Case) -> SizeLimit | None:
    """Return the size limit of a direction's path, or None if sizes do not explain its losses."""
    side, id = case.sender, case.connection.id
    return case.reading.derive("size limit", id, side, lambda: _find(case))


def clamp_remedy(case: Case, size: int) -> Remedy:
    """Return the advice for a receiver's capture, which shows no more than the largest payload that arrived."""
    to = f" to {size:,} bytes or a little more" if size else ""
    return Remedy(
        f"Clamp the MSS{to} in both directions where the path's MTU falls, or let ICMP errors through to "
        f"{case.the_sender}; there, tcp_mtu_probing finds the size without ICMP. A capture at that end shows which "
        "sizes are lost.",
        settings=(
            "iptables -t mangle -A FORWARD -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu",
            "sysctl -w net.ipv4.tcp_mtu_probing=1",
        ),
        side_effects="Smaller segments carry slightly more header bytes.",
    )


def _find(case: Case) -> SizeLimit | None:
    errors = tuple(
        each
        for each in case.analysis.icmp_errors
        if (each.connection, each.direction) == (case.connection.id, case.sender) and each.is_too_big
    )
    if not errors and case.data.rto_retransmissions + case.data.tail_loss_probes < FEWEST_LOST - 1:
        return None
    packets = packets_of(case)
    sent = None if packets is None else sent_of(packets, case.sender)
    if packets is None or sent is None:
        return None
    header_bytes = HEADERS[case.connection.ip_version] + TIMESTAMPS * bool((packets["tsval"] >= 0).any())
    mtu = min((each.mtu for each in errors if each.mtu), default=None)
    if mtu is not None:
        is_large = sent.is_lost & (sent.length > mtu - header_bytes)
    else:
        is_large = _never_arrived(sent)
        if not is_large.any():
            return None
        least, start_ns = int(sent.length[is_large].min()), int(sent.time_ns[is_large][0])
        if not _shows(_mss(packets)[case.sender == "a"], sent, is_large) and not (
            _is_all_large(sent, is_large) and again_stuck(case, start_ns, least)
        ):
            return None
    return _limit(case, packets, sent, is_large, errors, mtu, header_bytes)


def _never_arrived(sent: Sent) -> Flags:
    """Return which lost segments are larger than all that arrived from then on."""
    import numpy as np

    arrived = np.where(sent.has_arrived, sent.length, 0)
    later = np.maximum.accumulate(arrived[::-1])[::-1]
    large: Flags = sent.is_lost & (sent.length > later)
    return large


def _mss(packets: Packets) -> tuple[int, int]:
    """Return the MSS options of the initiator's SYN and the responder's; -1 for a SYN without one."""
    values = []
    for side in "ab":
        own = packets.sent_by(side)
        options = own["mss"][own.has(SYN)]
        values.append(int(options[0]) if len(options) else -1)
    return values[0], values[1]


def _shows(mss: int, sent: Sent, is_large: Flags) -> bool:
    import numpy as np

    times = sent.time_ns[is_large]
    since = sent.time_ns >= times[0]
    least = int(sent.length[is_large].min())
    small = since & (sent.length < least)
    arrived, lost = int((small & sent.has_arrived).sum()), int((small & sent.is_lost).sum())
    count, flights = int(is_large.sum()), 1 + int((np.diff(times) > FLIGHT_NS).sum())
    if not arrived or lost > SMALL_LOST_SHARE * (arrived + lost) or count < FEWEST_LOST or flights < FEWEST_FLIGHTS:
        return False
    has_fitted = bool((sent.has_arrived & (sent.length >= least)).any())
    if least > max(mss, ETHERNET_MSS if mss < 0 else 0) and (count < FEWEST_SUPER or has_fitted):
        return False
    # The same bytes arrived in smaller pieces, or smaller segments arrived while the large ones were repeated.
    in_pieces = int((is_large & (sent.acked_ns >= 0)).sum())
    between = small & sent.has_arrived & (sent.time_ns <= times[-1])
    return in_pieces > 0 or bool(between.any())


def _is_all_large(sent: Sent, is_large: Flags) -> bool:
    """Return whether nothing but large segments was sent from the first lost one on, at several times."""
    import numpy as np

    times = sent.time_ns[is_large]
    return bool(
        not (sent.has_arrived & (sent.time_ns >= times[0])).any()
        and sent.length[is_large].min() >= LEAST_STUCK_BYTES
        and 1 + int((np.diff(times) > FLIGHT_NS).sum()) >= FEWEST_FLIGHTS
    )


def _limit(
    case: Case,
    packets: Packets,
    sent: Sent,
    is_large: Flags,
    errors: tuple[IcmpError, ...],
    mtu: int | None,
    header_bytes: int,
) -> SizeLimit:
    lengths, times = sent.length, sent.time_ns[is_large]
    since = sent.time_ns >= (times[0] if len(times) else errors[0].time_ns)
    least = int(lengths[is_large].min()) if len(times) else 0
    fitting = sent.has_arrived & since & ((lengths < least) if least else True)
    ends = sent.acked_ns[is_large].copy()
    ends[ends < 0] = case.connection.end_ns
    spans = _joined(sorted(zip(sent.first_ns[is_large].tolist(), ends.tolist(), strict=True)))
    mss = _mss(packets)
    outside = sent.is_lost & ~is_large & ~_within(sent.time_ns, spans)
    return SizeLimit(
        int(lengths[fitting].max()) if fitting.any() else 0,
        least,
        int(is_large.sum()),
        int(fitting.sum()),
        errors,
        mtu,
        spans,
        (*(each.frame for each in errors[:FRAMES]), *map(int, sent.frame[is_large][:FRAMES])),
        mss if case.sender == "a" else (mss[1], mss[0]),
        header_bytes,
        0 if outside.any() else case.data.budget_after_loss_ns,
    )


def _within(times: Numbers, spans: Sequence[tuple[int, int]]) -> Flags:
    """Return which times lie in one of the spans."""
    import numpy as np

    starts, ends = (np.array([span[place] for span in spans], np.int64) for place in (0, 1))
    place = np.searchsorted(starts, times, side="right") - 1
    within: Flags = (place >= 0) & (times <= np.append(ends, 0)[place])
    return within


def _joined(spans: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Join overlapping spans, given in order of their starts."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return tuple(joined)
