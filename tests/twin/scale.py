"""Window scaling and segment size negotiated by the SYNs (RFC 7323 §2, RFC 9293 §3.7.1)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from twin.segments import Segment

MAX_SHIFT = 14
"""Larger shifts count as this one (RFC 7323 §2.3)."""
TIMESTAMPS_BYTES = 12
"""Ten bytes, padded (RFC 7323 Appendix A)."""
DEFAULT_MSS = {4: 536, 6: 1220}
LARGEST_MSS = 0xFFFF


class Offer(Enum):
    """The scaling option of a SYN, other than a shift."""

    UNSEEN = "unseen"
    """The SYN, or the part of it with the option, was not captured."""
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Syn:
    """The last copy of one side's SYN."""

    offer: Offer | int
    mss: int
    """0 if the option is absent."""
    window: int
    has_timestamps: bool
    sack_permitted: bool
    is_answer: bool
    """Whether it was a SYN/ACK."""
    fast_open: bool
    early_bytes: int
    """The SYN's data: more may follow before the first acknowledgment (RFC 7413 §4.2)."""
    earlier_shift: int | None
    """The shift of an earlier copy, if the last had none."""
    ecn: int
    """Its flags ECE, CWR and AE."""


NO_SYN = Syn(Offer.UNSEEN, 0, 0, False, False, False, False, 0, None, 0)


def read_syn(segment: Segment, earlier: Syn | None, peer: Syn) -> Syn:
    """Process a SYN after an `earlier` copy."""
    options = segment.options
    offer: Offer | int = Offer.UNSEEN if options.is_cut else Offer.ABSENT
    if options.window_scale is not None:
        offer = options.window_scale
    earlier_shift = earlier.earlier_shift if earlier else None
    if earlier and isinstance(earlier.offer, int) and offer is Offer.ABSENT:
        earlier_shift = earlier.offer
    is_fast_open = segment.length > 0 and (options.fast_open or peer.fast_open)
    return Syn(
        offer=offer,
        mss=options.mss or 0,
        window=segment.window,
        has_timestamps=options.timestamps is not None,
        sack_permitted=options.sack_permitted,
        is_answer=segment.is_ack,
        fast_open=options.fast_open,
        early_bytes=segment.length if is_fast_open else earlier.early_bytes if earlier else 0,
        earlier_shift=earlier_shift,
        ecn=segment.flags & 0x1C0,
    )


def answered_offer(own: Syn, peer: Syn) -> Offer | int:
    """Return the offer that counts: a SYN/ACK with the option answers a copy of the SYN that had it (RFC 7323 §2.2)."""
    answers = peer.is_answer and isinstance(peer.offer, int)
    if own.offer is Offer.ABSENT and answers and own.earlier_shift is not None:
        return own.earlier_shift
    return own.offer


def negotiate(own: Syn, peer: Syn) -> int | None:
    """Return the shift of a side's windows; None if uncertain (RFC 7323 §2.2, §2.3).

    Both SYNs must carry the option; a SYN/ACK carries it only if the SYN did, so it suffices alone.
    """
    offer, peer_offer = answered_offer(own, peer), answered_offer(peer, own)
    if Offer.ABSENT in (offer, peer_offer):
        return 0
    if isinstance(offer, int) and (isinstance(peer_offer, int) or own.is_answer):
        return min(offer, MAX_SHIFT)
    return None


def confirmed_shift(own: Syn, first_window: int) -> int | None:
    """Return the shift shown by the first window after a SYN whose answer was not captured.

    A value below half of the SYN's window, with nothing received meanwhile, must be scaled: a receiver does not take
    its right edge back (RFC 9293 §3.8.6, SHLD-14).
    """
    if isinstance(own.offer, int) and first_window < own.window // 2:
        return min(own.offer, MAX_SHIFT)
    return None


def segment_size(own: Syn, peer: Syn, ip_version: int) -> int | None:
    """Return the maximum payload per segment: the smaller MSS minus the timestamps option; None without the peer's
    SYN.
    """
    if peer.offer is Offer.UNSEEN:
        return None
    size = min(peer.mss or DEFAULT_MSS[ip_version], own.mss or LARGEST_MSS)
    return max(size - TIMESTAMPS_BYTES * (own.has_timestamps and peer.has_timestamps), 0)
