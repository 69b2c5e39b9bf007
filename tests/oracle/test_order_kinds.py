"""Each kind of difference in holes and repeated ACKs, at one place in the reference captures.

Sequence numbers in the comments count from the connection's ISN, as in Wireshark.
"""

from __future__ import annotations

import pytest
from cases import all_cases
from oracle import loss_kinds
from oracle.compare import Comparison, events_of
from oracle.conftest import DAMAGED, Look
from oracle.history import recall
from oracle.judged import read_judged
from oracle.sequence import step

DUPLICATE, MISSING, UNSEEN = "duplicate_ack", "previous_segment_missing", "acked_unseen"


@all_cases(
    ("name", "frame", "kind"),
    # Every byte that such an ACK is the first to cover was captured, according to judged.csv.
    lambda: [
        *[
            (each.name, each.frame, loss_kinds.REPORTED_AGAIN)
            for each in read_judged()
            if each.field == UNSEEN and each.name != DAMAGED
        ],
        ("fuzz-72.pcap", 23, loss_kinds.OUTSIDE),
    ],
)
def test_hole_is_acknowledged_once(look: Look, name: str, frame: int, kind: str) -> None:
    row, segment, found = look(name, frame, UNSEEN)
    assert (UNSEEN in events_of(row), UNSEEN in segment.events, found) == (False, True, {kind})


@pytest.mark.parametrize(("frame", "covered"), [(4, 18), (16, 51)])
def test_each_hole_is_reported(look: Look, every_comparison: list[Comparison], frame: int, covered: int) -> None:
    # fuzz-72. tshark: nothing, until the other side acknowledges something new.
    row, segment, found = look("fuzz-72.pcap", frame, UNSEEN)
    (comparison,) = (one for one in every_comparison if one.name.endswith("fuzz-72.pcap"))
    assert recall(comparison.segments)[frame].acked_unseen == covered
    assert UNSEEN in events_of(row)
    assert UNSEEN not in segment.events
    assert found == {loss_kinds.NOT_REPORTED}


def test_what_is_acknowledged_unseen(comparisons: list[Comparison]) -> None:
    """Checks every ACK of data that was never captured, and no other."""
    differences, seen = [], 0
    for comparison in comparisons:
        for frame, past in recall(comparison.segments).items():
            is_flagged = UNSEEN in events_of(comparison.rows[frame])
            seen += is_flagged
            if is_flagged != (past.acked_unseen > 0):
                differences.append((comparison.name, frame, past))
    assert differences == []
    assert seen == 18


def test_answer_of_another_server(look: Look) -> None:
    # tcp-fastopen-10: its number is 1,180,489,186 ahead of the first one's.
    row, segment, found = look("tcp-fastopen-10-syn-data-ignore__input.pcap", 14, MISSING)
    _, first, _ = look("tcp-fastopen-10-syn-data-ignore__input.pcap", 2)
    assert step(first.seq, segment.seq) == 1_180_489_186
    assert MISSING not in events_of(row)
    assert MISSING in segment.events
    assert found == {loss_kinds.OTHER_ISN}


@all_cases(
    ("name", "frame", "ours", "theirs", "kind"),
    [
        # RFC 5681 §2 (a): a duplicate ACK requires outstanding data. Answers to data received twice; the ACK has a
        # D-SACK (RFC 2883) and is at SND.MAX.
        ("fast001.trace", 26, None, DUPLICATE, loss_kinds.NOTHING_OUTSTANDING),
        ("fast001.trace", 35, None, DUPLICATE, loss_kinds.NOTHING_OUTSTANDING),
        ("fack004.trace", 28, None, DUPLICATE, loss_kinds.NOTHING_OUTSTANDING),
        ("rto002.trace", 11, None, DUPLICATE, loss_kinds.NOTHING_OUTSTANDING),
        ("test301.pcapng", 12, None, DUPLICATE, loss_kinds.NOTHING_OUTSTANDING),
        ("pppoe-over-qinq.pcap", 14, None, DUPLICATE, loss_kinds.NOTHING_OUTSTANDING),
        ("pppoe-over-qinq.pcap", 78, None, DUPLICATE, loss_kinds.NOTHING_OUTSTANDING),
        # Listed as debatable: a repeated ACK with everything acknowledged, and no D-SACK.
        ("mpls-basic.pcap", 36, None, DUPLICATE, loss_kinds.NOTHING_OUTSTANDING),
        ("rto007.trace", 33, None, DUPLICATE, loss_kinds.NOTHING_OUTSTANDING),
        # pptp: frame 7 is a copy of 6, 100 µs later, with its IP identification.
        ("tests__pptp.pcap", 7, "capture_duplicate", DUPLICATE, loss_kinds.CAPTURED_TWICE),
        # The ACK equals the previous one; its SACK is new; the window is autotuned at every segment (RFC 6675 §2).
        ("test301.pcapng", 171, DUPLICATE, "window_update", loss_kinds.CARRIES_SACK),
        ("bypass-missing-event__tor_bl.pcap", 155, DUPLICATE, "window_update", loss_kinds.CARRIES_SACK),
    ],
)
def test_repeated_acks(look: Look, name: str, frame: int, ours: str | None, theirs: str, kind: str) -> None:
    row, segment, found = look(name, frame)
    assert events_of(row) == {ours} if ours else DUPLICATE not in events_of(row)
    assert (segment.events, found) == ({theirs}, {kind})
    if kind == loss_kinds.CAPTURED_TWICE:
        assert segment.ip_id == look(name, frame - 1)[1].ip_id


@pytest.mark.parametrize(("frame", "opener"), [(117, 116), (121, 116), (176, 169), (180, 168), (214, 212)])
def test_out_of_order_for_both(look: Look, frame: int, opener: int) -> None:
    # test301: frame 116 has IP identification 0xe7b9, 117 0xe7b7: sent before, captured after. The others are similar.
    row, segment, found = look("test301.pcapng", frame, "out_of_order")
    assert int(segment.ip_id, 0) < int(look("test301.pcapng", opener)[1].ip_id, 0)
    assert events_of(row) == segment.events == {"out_of_order"}
    assert found == set()
