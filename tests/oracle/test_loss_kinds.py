"""Each kind of difference in retransmissions, at one place in the reference captures.

Sequence numbers in the comments count from the connection's ISN, as in Wireshark.
"""

from __future__ import annotations

import pytest
from cases import all_cases
from oracle import loss_kinds
from oracle.compare import events_of
from oracle.conftest import Look

FAST, SPURIOUS = "fast_retransmission", "spurious_retransmission"
RECOVERY = {"resent", "retransmission", "recovery_retransmission"}


@pytest.mark.parametrize("frame", [44, 46, 48, 50, 52, 54, 56])
def test_captured_before_and_behind_a_router(look: Look, frame: int) -> None:
    # bug-5437-02 contains each packet twice (two outer headers), before and after a router: TTL 64 and 63. The FIN of
    # 43 (IP identification 0xd203) recurs in 44, 11 µs later. The server retransmits it in 45, 47, 49, 51, 53 and 55,
    # each with a new identification, and each recurs in the next frame.
    row, segment, _ = look("bug-5437-02__input.pcap", frame)
    _, original, _ = look("bug-5437-02__input.pcap", frame - 1)
    assert (original.ip_id, original.ttl, segment.ttl) == (segment.ip_id, "64", "63")
    assert segment.time_ns - original.time_ns < 300_000
    assert "capture_duplicate" in events_of(row)


@all_cases(
    ("name", "frame", "ours", "theirs", "kinds"),
    [
        ("bug-5437-02__input.pcap", 44, {"capture_duplicate"}, {"resent"}, {loss_kinds.CAPTURED_TWICE}),
        # comp003: frame 30 is [6801, 8161), sent in 10 (IP identification 0xbafc) and in 30 with 0xb60e, after 0xb60d
        # of 28, the fast retransmission. b's SACK (29) reports 13601:19041. tshark: out of order, because the highest
        # byte left 64 ms before, less than the handshake's 174 ms.
        ("comp003.trace", 30, RECOVERY, {"out_of_order"}, {loss_kinds.SENT_LATER}),
        # Frame 30 of fuzz-72 has one flipped bit: it is 2^31 off. tshark: retransmission, spurious, previous segment
        # missing. Its ACK of 330 is intact, and the other side's newest segment, 27, ended at 294: the capture lacks
        # later data.
        ("fuzz-72.pcap", 30, {"acked_unseen"}, {"resent", SPURIOUS, "previous_segment_missing"}, None),
        # comp006: frame 36 begins the recovery, with SND.MAX 30031. Frame 53 acknowledges 25741, part of it; 55 and 57
        # repeat that and SACK 28601:32891. Frame 58 sends the next hole, in the same recovery. tshark counts two
        # duplicate ACKs again: fast. tcprs: a part of recovery.
        ("comp006.trace", 58, RECOVERY, {"resent", FAST}, {loss_kinds.IN_RECOVERY}),
        # reordering-via-proximity: frames 325 to 330 are six duplicate ACKs, with SACK from 286060 up to 294820. Frame
        # 332 sends [283140, 284600) 32 ms after the last, after other data that the window allowed. tshark: out of
        # order, because it was never captured before. Its IP identification, 0x288f, follows 0x288e of 331. tcprs:
        # FACK.
        (
            "reordering-via-proximity.trace",
            332,
            {"resent", FAST},
            {"out_of_order"},
            {loss_kinds.LATE_ANSWER, loss_kinds.SENT_LATER},
        ),
        # Listed ("15 dup ACKs, sent 178.2 ms after the last one"), but the packets support tshark. comp009: frame 56
        # resends the data of 39 after 219 ms, 178 ms after the last ACK: a timeout. tcprs: RTO.
        ("comp009.trace", 56, {"resent", "rto_retransmission"}, None, None),
    ],
)
def test_retransmissions(
    look: Look, name: str, frame: int, ours: set[str], theirs: set[str] | None, kinds: set[str] | None
) -> None:
    row, segment, found = look(name, frame)
    assert events_of(row) == ours
    assert segment.events == theirs if theirs else FAST not in segment.events
    assert kinds is None or found == kinds


@pytest.mark.parametrize(("frame", "tsval"), [(212, 688), (214, 690), (216, 690), (218, 702), (220, 702)])
def test_never_captured_and_sent_again(look: Look, frame: int, tsval: int) -> None:
    # tor_bl was captured at the receiver. Frame 154 skips [87805, 90685): TSval 3561181635, IP identification 0x1b1c.
    # Frames 212 to 220, which fill this and the next holes, have TSvals 53 to 67 ms newer, and the identifications
    # 0x1b4a to 0x1b4e, which follow that of 211, the newest data: they were sent after all of it. tshark: out of order.
    # The list of debatable frames has three of the five.
    row, segment, found = look("bypass-missing-event__tor_bl.pcap", frame, "resent")
    _, opener, _ = look("bypass-missing-event__tor_bl.pcap", 154)
    assert (opener.timestamps[0], segment.timestamps[0]) == (3561181635, 3561181000 + tsval)
    assert (opener.ip_id, int(segment.ip_id, 0)) == ("0x1b1c", 0x1B4A + (frame - 212) // 2)
    assert "resent" in events_of(row)
    assert segment.events == {"out_of_order"}
    assert found == {loss_kinds.SENT_LATER}


def test_syn_ack_of_the_other_server(look: Look) -> None:
    # tcp-fastopen-10: two servers answer one SYN. Frames 2, 4 and 12 are the first one's SYN/ACK, 14 is the other's,
    # with another number. Frame 15 repeats the first one's, 17 the other's: both are real retransmissions.
    for frame, before in ((15, 12), (17, 14)):
        row, segment, _ = look("tcp-fastopen-10-syn-data-ignore__input.pcap", frame)
        assert segment.seq == look("tcp-fastopen-10-syn-data-ignore__input.pcap", before)[1].seq
        assert {"resent", "syn_retransmission"} <= events_of(row)
        assert segment.events == {"resent"}


def test_below_the_initial_sequence_number(look: Look) -> None:
    # fuzz-72 has flipped bits. Frame 1 is a SYN; the 9 bytes of 2 are 436,207,616 below it (0x70 instead of 0x8a).
    # tshark: out of order.
    row, segment, found = look("fuzz-72.pcap", 2)
    _, syn, _ = look("fuzz-72.pcap", 1)
    assert syn.seq - segment.seq == 436_207_616
    assert events_of(row) == set()
    assert segment.events == {"out_of_order"}
    assert found == {loss_kinds.BELOW_ISN}


@pytest.mark.parametrize(("name", "frame", "before"), [("comp003.trace", 48, 36), ("fack018.trace", 54, 47)])
def test_retransmission_that_was_lost(look: Look, name: str, frame: int, before: int) -> None:
    # comp003: frame 36 resends [10881, 12241) in the recovery of 28, and is lost: 45 and 47 acknowledge 10881 and SACK
    # later data, so 48 sends it a third time. fack018: the same with 47, 53, and 54. tshark: fast.
    row, segment, found = look(name, frame)
    _, lost, _ = look(name, before)
    assert (lost.seq, lost.length) == (segment.seq, segment.length)
    assert {"recovery_retransmission", "lost_retransmission"} <= events_of(row)
    assert segment.events == {"resent", FAST}
    assert found == {loss_kinds.IN_RECOVERY}


def test_timeout_among_duplicate_acks(look: Look) -> None:
    # comp018: frame 102 resends [57934, 59364), and is lost. 137 is a duplicate ACK, which 138 answers 54 µs later with
    # new data. 139 sends the segment again, 17 ms later, with no ACK in between, and 252 ms after 102: the
    # retransmission timer. The next frames agree: 142 moves SND.UNA, 143 and 144 are new data, 145 is a duplicate ACK,
    # and only then are the other holes sent, which is F-RTO (RFC 5682 §3). tshark: fast.
    row, segment, found = look("comp018.trace", 139)
    times_ms = [look("comp018.trace", frame)[1].time_ns // 1_000_000 for frame in (102, 138, 139)]
    assert times_ms[2] - times_ms[1] in (16, 17)
    assert times_ms[2] - times_ms[0] in (251, 252)
    assert events_of(row) == {"resent", "rto_retransmission"}
    assert segment.events == {"resent", FAST}
    assert found == {loss_kinds.BY_TIMER}


@pytest.mark.parametrize(
    ("name", "frame", "ack", "left", "right"),
    [
        # Frame 199 moves SND.UNA to 174348 and reports a segment four further ahead; 71 µs before. tcprs: FACK.
        ("fack004.trace", 200, 199, 5_720, 7_150),
        # Frame 260, one duplicate ACK, reports a segment three further ahead; 60 µs before. tcprs: FACK.
        ("fack043.trace", 261, 260, 4_254, 5_672),
        # Frames 44 and 45 are duplicate ACKs, the first of which tshark takes for a window update; 2.4 ms before.
        ("pppoe-over-qinq.pcap", 46, 44, 1_012, 2_562),
        # All but the 429 bytes after it had arrived; 37 ms before, on a path of 410 ms.
        ("pppoe-over-qinq.pcap", 28, 27, 1_869, 2_633),
        # Frame 53, with a D-SACK, had arrived; the sender's side of the path was blocked until 56 (58 answers 55).
        ("pppoe-over-qinq.pcap", 57, 54, 1_868, 2_880),
        # 155 to 208 are fourteen duplicate ACKs, each with a different, autotuned window.
        ("bypass-missing-event__tor_bl.pcap", 212, 208, 15_840, 64_800),
    ],
)
def test_fast_by_sack(look: Look, name: str, frame: int, ack: int, left: int, right: int) -> None:
    # Nothing was retransmitted since SND.UNA passed the last recovery; SACK reports data this far ahead of the hole.
    row, segment, found = look(name, frame, FAST)
    _, report, _ = look(name, ack)
    assert (left, right) in [(low - segment.seq, high - segment.seq) for low, high in report.sack]
    assert FAST in events_of(row)
    assert FAST not in segment.events
    assert found == {loss_kinds.FEW_DUPLICATES}


@pytest.mark.parametrize(("frame", "covered_by", "last"), [(144, 62, 143), (165, 83, 164)])
def test_acknowledged_before_and_an_old_ack_last(look: Look, frame: int, covered_by: int, last: int) -> None:
    # inputs__tls contains connections twice, 83 frames apart. Frame 144 is a copy of 61: [518, 611), which 62
    # acknowledged with 1191. The preceding frame 143 is a copy of 60, with its ACK of 518, the only one that tshark
    # considers. The copies are further apart than the engine searches, so it judges the bytes: acknowledged when
    # captured.
    row, segment, found = look("inputs__tls.pcap", frame, SPURIOUS)
    _, ack, _ = look("inputs__tls.pcap", covered_by)
    _, old, _ = look("inputs__tls.pcap", last)
    assert old.ack < segment.seq + segment.length <= ack.ack
    assert events_of(row) == {"resent", SPURIOUS}
    assert found == {loss_kinds.LAST_ACK_IS_OLD}


def test_acknowledged_by_a_damaged_number(look: Look) -> None:
    # Frame 29 of fuzz-72 acknowledges 2,842,945, a damaged number: no window reaches that far, and no other packet
    # confirms it. 30 and 31 acknowledge 330 and 339. 32 begins at 348 and acknowledges 457, of which [445, 457) was not
    # captured; 34 is damaged by a bit of 512 within the window, so a hole seems to precede it.
    for frame, events in ((32, {"acked_unseen", "previous_segment_missing"}), (34, {"previous_segment_missing"})):
        row, segment, _ = look("fuzz-72.pcap", frame, SPURIOUS)
        assert events_of(row) == events
        assert segment.seq > look("fuzz-72.pcap", 31)[1].ack


def test_not_all_was_acknowledged(look: Look) -> None:
    # Frame 35 of fuzz-72 carries [464, 476) and frame 34 acknowledged 468, so eight bytes are new: spurious for neither
    # tool.
    row, segment, found = look("fuzz-72.pcap", 35, SPURIOUS)
    assert look("fuzz-72.pcap", 34)[1].ack - segment.seq == 4
    assert SPURIOUS not in events_of(row) | segment.events
    assert found == set()
