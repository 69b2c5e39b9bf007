"""Find a sender that scales its receiver's windows by less than the receiver's SYN says.

In: a case whose capture was made away from the sender. Out: SmallerScale, or None. A window's right edge is a number
that nothing but the window explains: segments shorter than the MSS that end exactly there were cut by it. A message
that the receiver answered ended there by itself: requests may all be as long as the window field.
"""

from __future__ import annotations

from typing import NamedTuple

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.packets import ACK, RST, SYN, packets_of, unwrapped

TIMESTAMPS_BYTES = 12
"""Length of the timestamps option with its padding, which the MSS option does not include (RFC 6691)."""
PINNED_SHARE = 0.6
"""Mean flight ÷ its maximum: a sender that waits for a window keeps it full."""


class SmallerScale(NamedTuple):
    """A sender's scale.

    Attributes:
        shift: what the sender shifts the window field by.
        frames: segments that end exactly at the right edge that this gives.
        short: all segments shorter than the MSS.
    """

    shift: int
    frames: list[int]
    short: int


def may_be_smaller(case: Case) -> bool:
    """Return whether the sender's flight stays just below the largest window at a smaller shift."""
    data = case.data
    most, mean = data.sender_flight_max_bytes or 0, data.sender_flight_mean_bytes or 0.0
    shift, window = data.window_scale.shift or 0, data.receive_window_max_bytes or 0
    if mean < PINNED_SHARE * most:
        return False
    return any(0 <= (window >> less) - most < 2 * data.mss_bytes for less in range(1, shift + 1))


def _full_bytes(case: Case) -> int:
    """Return the payload of a full segment: by the SYNs, as a small window makes all segments short."""
    options = [each.syn_mss for each in (case.data, case.back) if each.syn_mss]
    return max(case.data.mss_bytes, min(options, default=0) - TIMESTAMPS_BYTES)


def smaller_scale(case: Case, times: float) -> SmallerScale | None:
    """Return the smallest shift at whose right edges at least `times` and half of the short segments end."""
    packets = packets_of(case)
    if packets is None or not len(packets):
        return None
    import numpy as np

    own, peer = packets.sent_by(case.sender), packets.sent_by("b" if case.sender == "a" else "a")
    is_data = (own["length"] > 0) & ~own.has(SYN)
    own, peer_data = own.of(is_data), peer["frame"][peer["length"] > 0]
    peer = peer.of(peer.has(ACK) & ~peer.has(RST) & ~peer.has(SYN))
    if not len(own) or not len(peer):
        return None
    base = int(own["seq"][0])
    ends = unwrapped(own["seq"], base) + own["length"]
    acks = unwrapped(peer["ack"], base)
    answers = np.searchsorted(peer_data, own["frame"])
    is_answered = np.diff(answers, append=len(peer_data)) > 0
    is_short = (own["length"] < _full_bytes(case)) & ~is_answered
    # The newest ACK captured before each segment: the sender knew no later one.
    before = np.searchsorted(peer["frame"], own["frame"]) - 1
    counts = {}
    for shift in range((case.data.window_scale.shift or 0) + 1):
        edges = acks + (peer["window_raw"] << shift)
        tops = np.maximum.accumulate(edges)
        known = before >= 0
        is_beyond = known & (ends > tops[np.maximum(before, 0)])
        hits = own["frame"][is_short & np.isin(ends, edges)]
        counts[shift] = (int(is_beyond.sum()), hits.tolist())
    _, at_offered = counts.pop(case.data.window_scale.shift or 0)
    for shift, (beyond, hits) in counts.items():
        is_enough = len(hits) >= times and 2 * len(hits) >= int(is_short.sum()) and len(hits) > len(at_offered)
        if not beyond and is_enough:
            return SmallerScale(shift, hits, int(is_short.sum()))
    return None
