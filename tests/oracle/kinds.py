"""Kinds of differences between tcpwin and tshark 4.0, derived from the packets by a program.

Takes a comparison and returns the names of the kinds of each difference; none if unexplained, which is an error in one
of the two. A kind requires that the sender's state (books.py) agrees with tcpwin, and that tshark's calculation
(tshark_list.py) gives tshark's number. Loss, order and repeated ACKs are in loss_kinds.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from oracle import loss_kinds
from oracle.books import Flight, keep_books
from oracle.compare import ACK, SYN, Comparison, Difference, Segment
from oracle.loss_kinds import LossExplainer
from oracle.sequence import step
from oracle.tshark_list import BLOCKS_TAKEN, Count, count_all

# bytes_in_flight: tshark has a number, tcpwin has none.
ONE_WAY = "one-way capture"
NOTHING_ACKED = "capture begins mid-connection, nothing acknowledged yet"
SENT_IS_UNKNOWN = "ACK of data that was never captured"
# bytes_in_flight: both have a number.
LAST_BLOCKS = "tshark forgets SACK blocks that the last ACK does not repeat"
FOURTH_BLOCK = "tshark passes over the fourth SACK block"
DUPLICATE_SACK = "tshark subtracts what a D-SACK reports"
STRAY_BLOCK = "tshark subtracts a SACK block beyond everything sent"
NEVER_CAPTURED = "bytes never captured missing at the front of tshark's list"
ACKED_AGAIN = "acknowledged bytes sent again count for tshark"
FIN_IS_A_BYTE = "a FIN in flight counts as a byte for tshark"
CLEARED = "an ACK that no window allows clears tshark's list"
# bytes_in_flight: tcpwin has a number, tshark has none.
SILENT = "tshark says nothing from a hole to the next ACK"
BLOCKS_EXCEED = "SACK blocks exceed what is left in tshark's list"
# window
SCALE_REVIVED = "a SYN captured twice brings scaling back for tshark"
# window_update
CARRIES_SACK = loss_kinds.CARRIES_SACK
AFTER_AN_OLD_ACK = "a reordered old ACK before it hides a window update from tshark"

ALL = (
    *(ONE_WAY, NOTHING_ACKED, SENT_IS_UNKNOWN),
    *(LAST_BLOCKS, FOURTH_BLOCK, DUPLICATE_SACK, STRAY_BLOCK),
    *(NEVER_CAPTURED, ACKED_AGAIN, FIN_IS_A_BYTE, CLEARED),
    *(SILENT, BLOCKS_EXCEED, SCALE_REVIVED, AFTER_AN_OLD_ACK),
    *loss_kinds.ALL,
)

Kinds = frozenset[str]


def explain(comparison: Comparison) -> Iterator[tuple[Difference, Kinds]]:
    """Yield every difference of a capture with its kinds."""
    explainer = Explainer(comparison)
    for difference in [*comparison.differences, *explainer.only_ours()]:
        yield difference, explainer.kinds(difference)


class Explainer:
    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison
        self.segments = {segment.frame: segment for segment in comparison.segments}
        self.flights = keep_books(comparison.segments)
        self.counts = count_all(comparison.segments)
        self.loss = LossExplainer(comparison)
        self.ways = {(segment.stream, segment.source) for segment in comparison.segments}

    def only_ours(self) -> Iterator[Difference]:
        """Yield bytes in flight of segments with data for which tshark has no value."""
        for frame in self.flights:
            segment, row = self.segments[frame], self.comparison.rows[frame]
            ours = (row["bytes_in_flight"], row["pipe"])
            if segment.bytes_in_flight is None and ours != (None, None):
                yield Difference("bytes_in_flight", frame, ours, None, is_debatable=False)

    def kinds(self, difference: Difference) -> Kinds:
        explain_field: dict[str, Callable[[Difference], Kinds]] = {
            "bytes_in_flight": self.flight_kinds,
            "window": self.window_kinds,
            "window_update": self.update_kinds,
        }
        return explain_field.get(difference.field, self.loss.kinds)(difference)

    def flight_kinds(self, difference: Difference) -> Kinds:
        flight, count = self.flights[difference.frame], self.counts[difference.frame]
        books_agree = (flight.outstanding, flight.pipe) == difference.ours
        if not books_agree or count.bytes_in_flight != difference.theirs:
            return frozenset()
        if flight.una is None or flight.outstanding is None:
            return frozenset({self.why_unknown(difference.frame, flight)})
        if difference.theirs is None:
            return frozenset({SILENT if count.is_silent else BLOCKS_EXCEED})
        return frozenset(_parts(flight, count, flight.una))

    def window_kinds(self, difference: Difference) -> Kinds:
        """RFC 7323 §2.2 requires both SYNs, the answered one and its answer, to carry the option."""
        segment = self.segments[difference.frame]
        syns = [other for other in self.before(segment) if other.flags & SYN]
        answers = [syn for syn in syns if syn.flags & ACK]
        asked = [syn for syn in syns if not syn.flags & ACK]
        if not answers or difference.ours != segment.window_raw:
            return frozenset()
        is_disabled = answers[-1].wscale is None
        is_repeated = len({(syn.seq, syn.ip_id) for syn in asked}) < len(asked)
        revived = [segment.window_raw << (syn.wscale or 0) for syn in asked]
        is_kind = is_disabled and is_repeated and difference.theirs in revived
        return frozenset({SCALE_REVIVED}) if is_kind else frozenset()

    def update_kinds(self, difference: Difference) -> Kinds:
        segment, row = self.segments[difference.frame], self.comparison.rows[difference.frame]
        own = [other for other in self.before(segment) if other.source == segment.source]
        if not own or segment.length:
            return frozenset()
        if difference.theirs and segment.sack and segment.ack == own[-1].ack:
            is_duplicate = any(step(segment.ack, right) > 0 for _, right in segment.sack)
            is_named = "duplicate_ack" in row["events"].split("|")
            return frozenset({CARRIES_SACK}) if is_duplicate and is_named else frozenset()
        if difference.ours and step(own[-1].ack, segment.ack) > 0:
            highest = max(own, key=lambda other: (step(segment.ack, other.ack), other.frame))
            is_update = highest.ack == segment.ack and highest.window_raw != segment.window_raw
            return frozenset({AFTER_AN_OLD_ACK}) if is_update else frozenset()
        return frozenset()

    def why_unknown(self, frame: int, flight: Flight) -> str:
        segment = self.segments[frame]
        if (segment.stream, segment.destination) not in self.ways:
            return ONE_WAY
        return SENT_IS_UNKNOWN if flight.is_lost else NOTHING_ACKED

    def before(self, segment: Segment) -> Sequence[Segment]:
        """Return the earlier segments of the same connection."""
        return [
            other
            for other in self.comparison.segments
            if other.stream == segment.stream and other.frame < segment.frame
        ]


def _parts(flight: Flight, count: Count, una: int) -> Iterator[str]:
    """Yield each non-zero part of the difference between tshark's number and SND.MAX − SND.UNA − SACKed."""
    if count.is_cleared:
        yield CLEARED
    elif step(una, count.low) > 0:
        yield NEVER_CAPTURED
    elif step(una, count.low) < 0:
        yield ACKED_AGAIN
    if flight.control > count.own_control:
        yield FIN_IS_A_BYTE
    below = [block for block in flight.last_blocks if step(una, block[1]) <= 0]
    beyond = [block for block in flight.last_blocks if step(flight.max, block[1]) > 0]
    if sum(step(*block) for block in {*flight.last_blocks} - {*below, *beyond}) != flight.sacked:
        yield LAST_BLOCKS
    # RFC 2883 §4: a block below the acknowledgment reports data received twice.
    if below:
        yield DUPLICATE_SACK
    if beyond:
        yield STRAY_BLOCK
    if len(flight.last_blocks) > BLOCKS_TAKEN:
        yield FOURTH_BLOCK
