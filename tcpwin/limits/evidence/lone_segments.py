"""Waits of single segments in flight for their ACKs, each followed at once by more data of the same side.

In: a case whose segments may be read a second time. Out: Waits. Judges nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.capture import table_of

AT_ONCE_NS = 2_000_000
"""Data that was waiting for an ACK leaves within this time after the ACK reached its sender."""


class Waits(NamedTuple):
    """Waits of a single segment in flight for its ACK.

    Attributes:
        rtts_ns: round trip of each such ACK, at the capture point.
        start_ns, end_ns: start of the first wait and end of the last.
        triples: frames of segment, ACK and following data, wait by wait.
    """

    rtts_ns: Sequence[int] = ()
    start_ns: int = 0
    end_ns: int = 0
    triples: Sequence[Sequence[int]] = ()

    def frames(self, most: int) -> tuple[int, ...]:
        """Return the frames of the first waits; the data that ends a wait may begin the next."""
        return tuple(dict.fromkeys(frame for triple in self.triples[:most] for frame in triple))


def waits_of(case: Case, *, is_delayed: bool, is_full: bool) -> Waits:
    """Find the waits of the case's sender.

    Args:
        is_delayed: whether the ACK must be a delayed one.
        is_full: whether one of the two segments must be full, or both be smaller.
    """
    table = table_of(case)
    if table is None:
        return Waits()
    # Already imported by the reader of the columns.
    import numpy as np

    directions, lengths, times_ns = table["direction"], table["length"], table["time_ns"]
    sent = np.flatnonzero((directions == case.sender) & (lengths > 0))
    answers = np.flatnonzero(directions == case.receiver)
    if len(sent) < 2 or not len(answers):
        return Waits()
    before, after = sent[:-1], sent[1:]
    # The last ACK between the two segments. Its effect shows a round trip to the sender later; what comes sooner was on
    # its way when the ACK passed.
    acks = answers[np.maximum(np.searchsorted(answers, after) - 1, 0)]
    ends = table["seq"][before] + lengths[before].astype(np.uint32)
    longest = np.maximum(lengths[before], lengths[after]) >= (case.data.mss_bytes or 0)
    leg_ns, since_ack_ns = case.data.sender_shift_ns or 0, times_ns[after] - times_ns[acks]
    is_wait = (
        (acks > before)
        & (acks < after)
        & (lengths[acks] == 0)
        & (table["ack"][acks] == ends)
        & ~np.ma.getmaskarray(table["rtt_ns"])[acks]
        & (longest == is_full)
        & (since_ack_ns >= leg_ns * 7 // 8)
        & (since_ack_ns <= leg_ns * 9 // 8 + AT_ONCE_NS)
    )
    if is_delayed:
        is_wait[is_wait] = ["delayed_ack" in events.split("|") for events in table["events"][acks[is_wait]]]
    before, acks, after = before[is_wait], acks[is_wait], after[is_wait]
    if not len(acks):
        return Waits()
    return Waits(
        rtts_ns=np.ma.getdata(table["rtt_ns"])[acks].tolist(),
        start_ns=int(times_ns[before[0]]),
        end_ns=int(times_ns[after[-1]]),
        triples=table["frame"][np.stack((before, acks, after), axis=1)].tolist(),
    )
