"""Differences between tcpwin and tshark in a capture with fuzzed numbers.

fuzz-72 has 36 frames. Its server sends 9 bytes each time, its client 12; many packets in between were not captured,
according to the IP identifications, which increase by one per packet. Each payload has a number: a request's is one
more than the last, an answer's is its request's plus 128, which shows the expected values: request 0x122 ends at 72,
and 0x1a2 acknowledges 72. Numbers count from the server's initial one, 2,322,986,688, and from the client's first,
4,058,832,554. The windows are unscaled: the client's falls by a byte for each that it acknowledges. All checksums are
right, or were computed with a damaged length (1, 20), so they do not show the damage. tshark believes frame 12, 131,153
bytes on, 2^17 more than expected and beyond every window: everything that the server sends after it seems to be a
retransmission.

Two frames are judged by damaged headers: 24 acknowledges 276 instead of 240, so both tools call 25 spurious although it
was new; 34 is 2^9 further, within the window, which no packet captured until then contradicts. judged.csv gives the
reason for each label.
"""

from __future__ import annotations

import pytest
from oracle.compare import Comparison
from oracle.conftest import DAMAGED, Look
from oracle.judged import read_judged

ISN = 2_322_986_688
MISSING, UNSEEN, RESENT = "previous_segment_missing", "acked_unseen", "resent"
STARTS = {8: 54, 12: 131_153, 15: 90, 19: 177, 21: 213, 26: 276, 27: 285, 32: 348, 34: 869}
"""The server's frames."""
ACKS = {4: 27, 9: 63, 16: 141, 22: 222, 23: 1_979_711_719, 24: 276, 29: 2_842_945, 30: 330, 31: 339, 33: 357, 35: 366}
"""The client's frames."""


@pytest.mark.parametrize("frame", sorted(STARTS | ACKS))
def test_the_numbers_are_those_that_are_judged(look: Look, frame: int) -> None:
    _, segment, _ = look(DAMAGED, frame)
    number = segment.seq if frame in STARTS else segment.ack
    assert (number - ISN) % 2**32 == (STARTS | ACKS)[frame]


def test_no_other_frame_differs(every_comparison: list[Comparison]) -> None:
    """If a change makes another frame differ, judged.csv must say who is right."""
    (comparison,) = (each for each in every_comparison if each.name == DAMAGED)
    by_hand = {(each.frame, each.field) for each in read_judged() if each.name == DAMAGED}
    assert {frame for frame, _ in by_hand} == STARTS.keys() | ACKS.keys()
    fields = {MISSING, UNSEEN, RESENT}
    assert {(each.frame, each.field) for each in comparison.differences if each.field in fields} == by_hand


def test_the_fuzzed_capture_has_no_scale(every_comparison: list[Comparison]) -> None:
    """Between the client's frames 3 and 4 its window falls by as many bytes as its acknowledgment rises."""
    (comparison,) = (each for each in every_comparison if each.name == DAMAGED)
    third, fourth = (each for each in comparison.segments if each.frame in (3, 4))
    assert third.window_raw - fourth.window_raw == fourth.ack - third.ack == 18
