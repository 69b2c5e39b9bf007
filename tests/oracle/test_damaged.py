"""A capture of which a fuzzer changed numbers: where tcpwin and tshark differ, the packets are with tcpwin.

fuzz-72 has 36 frames. Its server sends 9 bytes each time, its client 12; many packets between were not captured, as the
IP identifications tell, which rise by one a packet. Numbers are from the server's initial one, 2,322,986,688, and from
the client's first, 4,058,832,554. No scale multiplies the windows: the client's falls by a byte for each that it
acknowledges. All checksums are right, so that nothing but the numbers tells what is damaged. tshark believes frame 12,
which stands 131,153 bytes on, 2^17 more than was due and beyond every window: all that the server sends after it seems
to be sent again.

One frame is told as its header stands, and is damaged: 34 is 2^9 on, within the window. Its identification follows
frame 32's, and 35 acknowledges [357, 366): it was that. Nothing that was captured until then says so.
"""

from __future__ import annotations

import pytest
from oracle.compare import Comparison, events_of
from oracle.conftest import Look

CAPTURE, ISN = "fuzz-72.pcap", 2_322_986_688
MISSING, UNSEEN, RESENT = "previous_segment_missing", "acked_unseen", "resent"
# Frame: what is so, what is not, what tshark says of both, and why.
TRUTHS: dict[int, tuple[set[str], set[str], set[str], str]] = {
    4: ({UNSEEN}, set(), set(), "it acknowledges 27; what was captured ended at 9, which 3 acknowledged"),
    8: (set(), {UNSEEN}, {UNSEEN}, "it acknowledges 72, and 7 holds [60, 72)"),
    9: (set(), {UNSEEN}, {UNSEEN}, "it acknowledges 63, and 8 holds [54, 63)"),
    12: (set(), {MISSING}, {MISSING}, "no window reaches 131,153; what is missing shows with the next number, 90"),
    15: ({MISSING}, set(), set(), "8 ended at 63: [63, 90) was not captured by any number that can be true"),
    16: ({UNSEEN}, set(), set(), "it acknowledges 141; but for 12, nothing from 90 on was captured"),
    19: ({MISSING}, {RESENT}, {RESENT}, "[177, 186): above all before it, 13 packets after 15, which stood at 90"),
    21: ({MISSING}, {RESENT}, {RESENT}, "[213, 222): five packets were not captured since 19, which ended at 186"),
    22: ({UNSEEN}, set(), set(), "it acknowledges 222, 81 more than 16; of them 19 and 21 hold 18"),
    23: (set(), {UNSEEN}, {UNSEEN}, "it acknowledges 1,979,711,719, which no window reaches"),
    24: ({UNSEEN}, set(), set(), "it acknowledges 276; 21 ended at 222"),
    26: ({MISSING}, {RESENT}, {RESENT}, "[276, 285): six packets were not captured since 25, which ended at 249"),
    27: (set(), {RESENT, MISSING}, {RESENT}, "[285, 294): the next packet after 26, and the next bytes"),
    29: (set(), {UNSEEN}, {UNSEEN}, "it acknowledges 2,842,945, which no window reaches, and nothing says so again"),
    30: (
        {UNSEEN},
        {RESENT, MISSING},
        {RESENT, MISSING},
        "it acknowledges 330; the newest that was captured, 27, ended at 294",
    ),
    31: ({UNSEEN}, set(), set(), "it acknowledges 339, nine bytes more that were not captured"),
    32: ({MISSING}, {RESENT}, {RESENT}, "[348, 357): seven packets were not captured since 27, which ended at 294"),
    33: (
        {UNSEEN},
        set(),
        set(),
        "it acknowledges 357; of that [339, 348) was not captured and not acknowledged before",
    ),
    34: (
        {MISSING},
        {RESENT, UNSEEN},
        {RESENT, UNSEEN},
        "[869, 878): within the window, and nothing from 357 on was captured before",
    ),
    35: ({UNSEEN}, set(), set(), "it acknowledges 366: no frame holds [357, 366)"),
}
STARTS = {8: 54, 12: 131_153, 15: 90, 19: 177, 21: 213, 26: 276, 27: 285, 32: 348, 34: 869}
"""Of the server's frames."""
ACKS = {
    4: 27,
    9: 63,
    16: 141,
    22: 222,
    23: 1_979_711_719,
    24: 276,
    29: 2_842_945,
    30: 330,
    31: 339,
    33: 357,
    35: 366,
}
"""Of the client's."""


@pytest.mark.parametrize("frame", sorted(TRUTHS))
def test_the_packets_are_with_tcpwin(look: Look, frame: int) -> None:
    is_so, is_not, others, _ = TRUTHS[frame]
    row, segment, _ = look(CAPTURE, frame)
    if frame in STARTS:
        assert segment.seq - ISN == STARTS[frame]
    else:
        assert (segment.ack - ISN) % 2**32 == ACKS[frame]
    told = events_of(row)
    assert is_so <= told
    assert not told & is_not
    assert segment.events & (is_so | is_not) == others


def test_no_other_frame_differs(every_comparison: list[Comparison]) -> None:
    """A change that makes one more differ must say here who is right."""
    (comparison,) = (each for each in every_comparison if each.name.endswith(CAPTURE))
    told = {
        (frame, event)
        for frame, row in TRUTHS.items()
        for event in (row[0] | row[1])
        if (event in row[0]) != (event in row[2])
    }
    fields = {MISSING, UNSEEN, RESENT}
    assert {(each.frame, each.field) for each in comparison.differences if each.field in fields} == told


def test_the_fuzzed_capture_has_no_scale(every_comparison: list[Comparison]) -> None:
    """Between the client's frames 3 and 4 its window falls by as many bytes as its acknowledgment rises."""
    (comparison,) = (each for each in every_comparison if each.name.endswith(CAPTURE))
    third, fourth = (each for each in comparison.segments if each.frame in (3, 4))
    assert third.window_raw - fourth.window_raw == fourth.ack - third.ack == 18
