"""Find silences in which a sender's packets were lost before the capture point, from what arrived afterwards.

In: a case. Out: Unseen values, and Smaller if smaller segments ended such a silence. A sender with nothing to say sends
nothing; one whose packets are lost keeps counting them (the IP ID of Linux and others that start from a TTL of 64
counts each connection's packets), or repeats data whose acknowledgments were lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.packets import ACK, PSH, RST, SYN, Packets, packets_of, unwrapped
from tcpwin.limits.evidence.sizes import TIMESTAMPS
from tcpwin.limits.roles import other_side

if TYPE_CHECKING:
    from tcpwin.limits.evidence.packets import Flags, Numbers

LEAST_NS = 1_000_000_000
"""Shorter ones are a burst of losses and its timeout."""
FEWEST_LOST = 3
FEWEST_COPIES = 2
COUNTED_SHARE = 0.8
"""Share of the other steps between packets that must count as expected."""
FEWEST_STEPS = 5
APART_NS = 100_000_000
MOST_TTL = 64
ID_RANGE = 1 << 16
SMALLER = 8
"""Bytes by which segments must be smaller than full ones: those of PPPoE."""
FEWEST_SMALLER = 3
HOLE_SEGMENTS = 3
FRAMES = 6


class Unseen(NamedTuple):
    """A silence, or a time of repetitions only.

    Attributes:
        start_ns, end_ns: last progress before it, and first after it, as captured.
        lost: packets of the sender that were lost meanwhile, by their IP IDs; or acknowledgments of the receiver.
        of_receiver: whether it was the receiver's packets that were lost.
        frames: frames of the last packet before it, of repetitions, and of the first packet after it.
    """

    start_ns: int
    end_ns: int
    lost: int
    of_receiver: bool
    frames: tuple[int, ...]

    @property
    def duration_ns(self) -> int:
        """Time without progress."""
        return self.end_ns - self.start_ns


class Smaller(NamedTuple):
    """A silence that ended when the sender sent smaller segments.

    Attributes:
        size, full_bytes: payload of the largest segments that ever arrived, and of a full one by the SYNs' MSS options.
        start_ns, end_ns: last packet before the silence, and the first after it.
        lost: packets lost meanwhile, by IP IDs; 0 if only the hole that they left shows it.
        frames: frames of these two packets.
    """

    size: int
    full_bytes: int
    start_ns: int
    end_ns: int
    lost: int
    frames: tuple[int, ...]

    @property
    def duration_ns(self) -> int:
        """Length of the silence."""
        return self.end_ns - self.start_ns


def find_unseen(case: Case) -> tuple[Unseen, ...]:
    """Return the times in which packets were lost before the capture point, in order."""
    return case.reading.derive("unseen", case.connection.id, case.sender, lambda: _find(case, packets_of(case)))


def find_smaller(case: Case) -> Smaller | None:
    """Return the longest silence that smaller segments ended; None if full segments arrived or nothing was lost."""
    return case.reading.derive("smaller", case.connection.id, case.sender, lambda: _smaller(case, packets_of(case)))


def _smaller(case: Case, packets: Packets | None) -> Smaller | None:
    options = [each.syn_mss for each in (case.data, case.back) if each.syn_mss]
    if packets is None or case.data.view == "sender" or len(options) < 2:
        return None
    import numpy as np

    own = packets.sent_by(case.sender)
    own = own.of(~own.has(SYN) & ~own.has(RST))
    full_bytes = min(options) - TIMESTAMPS * bool((own["tsval"] >= 0).any())
    is_data = own["length"] > 0
    size = int(own["length"].max()) if len(own) else 0
    is_largest = own["length"] == size
    if not size or size > full_bytes - SMALLER:
        return None
    times, frames = own["time_ns"], own["frame"]
    ids = {each.end_ns: each.lost for each in find_unseen(case) if not each.of_receiver}
    start = unwrapped(own["seq"], int(own["seq"][0]))
    before = np.concatenate(([0], np.maximum.accumulate(start + own["length"])[:-1]))
    holes = is_data & (start - before >= HOLE_SEGMENTS * size)
    found = []
    for at in np.flatnonzero(np.diff(times) >= LEAST_NS):
        first = _next_data(is_data, int(at))
        lost = ids.get(int(times[first]), 0)
        if is_largest[: at + 1].any() or not is_data[first] or not (lost or holes[first:][: FEWEST_STEPS + 1].any()):
            continue
        # A single piece of what was lost shows it too, if it is not the end of a message.
        if is_largest.sum() < FEWEST_SMALLER and (is_data[first:].sum() > 1 or own.has(PSH)[first]):
            continue
        pair = (int(frames[at]), int(frames[first]))
        found.append(Smaller(size, full_bytes, int(times[at]), int(times[first]), lost, pair))
    return max(found, key=lambda each: each.duration_ns, default=None)


def _find(case: Case, packets: Packets | None) -> tuple[Unseen, ...]:
    if packets is None or case.data.view == "sender":
        return ()
    own = packets.sent_by(case.sender)
    own = own.of(~own.has(SYN) & ~own.has(RST))
    peer = packets.sent_by(other_side(case.sender))
    peer = peer.of(peer.has(ACK) & ~peer.has(RST))
    if len(own) < FEWEST_LOST or not len(peer):
        return ()
    found = [*_skipped(own, case.data.mss_bytes), *_repeated(own, peer)]
    return tuple(sorted(found))


def _skipped(own: Packets, mss_bytes: int) -> list[Unseen]:
    """Return the silences over which the sender's IP ID counted on."""
    import numpy as np

    ids, times = own["ip_id"], own["time_ns"]
    if (ids < 0).any() or (own["ttl"] > MOST_TTL).any():
        return []
    # Frames that a receiver merged count as several.
    expected = np.maximum(1, -(-own["length"][:-1] // max(mss_bytes, 1)))
    more = (np.diff(ids) - expected) % ID_RANGE
    silent = np.diff(times) >= LEAST_NS
    others = more[~silent]
    if len(others) < FEWEST_STEPS or (others == 0).mean() < COUNTED_SHARE:
        return []
    is_data = own["length"] > 0
    start = unwrapped(own["seq"], int(own["seq"][0]))
    end = np.maximum.accumulate(np.where(is_data, start + own["length"], start[0]))
    found = []
    for at in np.flatnonzero(silent & (more >= FEWEST_LOST) & (more < ID_RANGE // 2)):
        data = _next_data(is_data, int(at))
        if is_data[data] and start[data] <= end[at]:
            frames = (int(own["frame"][at]), int(own["frame"][data]))
            found.append(Unseen(int(times[at]), int(times[data]), int(more[at]), False, frames))
    return found


def _next_data(is_data: Flags, at: int) -> int:
    """Return the next packet with data: an ACK may come before the sender's timer repeats what was lost."""
    return at + 1 + int(is_data[at + 1 :].argmax())


def _repeated(own: Packets, peer: Packets) -> list[Unseen]:
    """Return the times in which the sender only repeated what the receiver had acknowledged."""
    import numpy as np

    data = own.of(own["length"] > 0)
    if not len(data):
        return []
    base = int(data["seq"][0])
    end = unwrapped(data["seq"], base) + data["length"]
    acked = np.maximum.accumulate(unwrapped(peer["ack"], base))
    before = np.searchsorted(peer["time_ns"], data["time_ns"]) - 1
    is_copy = (before >= 0) & (end <= acked[np.maximum(before, 0)])
    edges = np.diff(np.concatenate(([0], is_copy.astype(np.int8), [0])))
    found = []
    for first, stop in zip(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1), strict=True):
        if not first or stop == len(data) or _tries(data["time_ns"][first:stop]) < FEWEST_COPIES:
            continue
        start_ns, end_ns = int(data["time_ns"][first - 1]), int(data["time_ns"][stop])
        told = (peer["time_ns"] >= start_ns) & (peer["time_ns"] < int(data["time_ns"][stop - 1]))
        if end_ns - start_ns >= LEAST_NS and told.any():
            frames = tuple(map(int, data["frame"][first - 1 : stop + 1][:FRAMES]))
            found.append(Unseen(start_ns, end_ns, int(told.sum()), True, frames))
    return found


def _tries(times: Numbers) -> int:
    import numpy as np

    return 1 + int((np.diff(times) > APART_NS).sum())
