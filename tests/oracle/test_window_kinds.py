"""Each kind of difference in windows, at one place in the reference captures; and places where tshark 4.0 is right
against the list of debatable frames.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import all_cases
from oracle import kinds
from oracle.compare import Comparison, read_doubts
from oracle.conftest import Look

import tcpwin


def events(row: dict[str, object]) -> set[str]:
    return {event for event in str(row["events"] or "").split("|") if event}


def test_handshake_captured_twice(look: Look) -> None:
    # inputs__tls: frame 5 is a SYN with shift 2, 7 a SYN/ACK without the option: no scaling, which tshark knows in 12,
    # a's first ACK (win 64240). Frames 88, 90 and 95 are copies of 5, 7 and 12 with the same IP identification and
    # timestamp, because the file contains the connection twice. A copied handshake cannot change the negotiated
    # options; but tshark now has 64,240 × 4, four times the window that a advertised in the same packet.
    first, as_dissected, _ = look("inputs__tls.pcap", 12)
    again, dissected_again, found = look("inputs__tls.pcap", 95)
    assert as_dissected.ip_id == dissected_again.ip_id == "0x26ee"
    assert (first["window"], as_dissected.window) == (64_240, 64_240)
    assert (again["window"], dissected_again.window) == (64_240, 256_960)
    assert found == {kinds.SCALE_REVIVED}


@pytest.mark.parametrize(("frame", "window", "shift"), [(18, 132_832, 5), (24, 64_512, 8), (30, 131_072, 5)])
def test_scale_of_the_syn_that_was_answered(look: Look, frame: int, window: int, shift: int) -> None:
    # tcp-fastopen-10, listed as debatable ("expected -2"); the packets support tshark. Frame 13 is a SYN with shift 5
    # and TSval 2767362994; 14 is its SYN/ACK (shift 8, TSecr 2767362994). 16 is the same SYN without options, but 17 is
    # a retransmission of 14: same ISN, TSecr still 2767362994. A SYN/ACK has the option only in answer to a SYN with it
    # (RFC 7323 §2.2), and the client continues with timestamps that echo 17: both follow 13 and 14. Its 4096 is then
    # 131,072, a common window, and the server's 252 is 64,512: the 64,980 of the SYN/ACK minus the 517 bytes of 23,
    # rounded up to a multiple of 256. Unscaled, both would take back their edges by more than 60,000 bytes.
    row, segment, _ = look("tcp-fastopen-10-syn-data-ignore__input.pcap", frame)
    assert (row["window"], row["shift"]) == (segment.window, shift) == (window, shift)
    assert not events(row) & {"window_shrink", "sub_mss_window"}


def test_shift_above_14(look: Look) -> None:
    # window-scale-range: the SYN has 255, which RFC 7323 §2.3 treats as 14. Frame 3 advertises 512: 512 × 16,384 =
    # 8,388,608.
    row, segment, found = look("window-scale-range.pcap", 3)
    assert (row["window"], row["shift"], segment.window) == (8_388_608, 14, 8_388_608)
    assert found == set()


@all_cases(
    ("name", "frame", "ours", "theirs", "expected"),
    [
        # test301: frame 115 acknowledges 319484; 116 is [323840, 325292), after a hole. 118 acknowledges 319484 again
        # and SACKs exactly that: new SACK information, a duplicate ACK (RFC 6675 §2). Its window is 23 units larger,
        # because autotuning continues.
        ("test301.pcapng", 118, {"duplicate_ack"}, {"window_update"}, {kinds.CARRIES_SACK}),
        # fast012: frame 296 acknowledges 194158 with window 59222 (IP identification 0x6393); 297 is older, 192773 with
        # 60607 (0x6392), and was overtaken. 298 acknowledges 194158 with 65535: only the window is new, 6,313 bytes
        # larger.
        ("fast012.trace", 298, {"window_update"}, set(), {kinds.AFTER_AN_OLD_ACK}),
        # Listed as debatable ("a SACK dup ACK"); the packets support tshark. gre-aruba: frames 997 and 998, 22 ms
        # apart, have the same ACK (3114793) and the same four blocks; the window grows from 573 to 4125 units, by
        # 909,312 bytes. No block is new, so this is not a duplicate ACK (RFC 6675 §2); the application has read. 1645
        # and 1647 are similar, with ACK 488256, and 644 and 1028 units.
        ("gre-aruba.pcap", 998, {"window_update"}, {"window_update"}, None),
        ("gre-aruba.pcap", 1647, {"window_update"}, {"window_update"}, None),
        # pppoe-over-qinq: frame 63 acknowledges 11322, everything; 64 repeats it, with 220 units more and a D-SACK of
        # 10779:11322. Nothing is outstanding, so it duplicates no ACK (RFC 5681 §2 (a)), and its window differs.
        ("pppoe-over-qinq.pcap", 64, {"window_update", "dsack"}, {"window_update"}, None),
    ],
)
def test_updates_and_duplicates(
    look: Look, name: str, frame: int, ours: set[str], theirs: set[str], expected: set[str] | None
) -> None:
    row, segment, found = look(name, frame)
    assert (events(row), segment.events) == (ours, theirs)
    assert expected is None or found == expected
    assert name != "fast012.trace" or look(name, 297)[1].ip_id == "0x6392"


def test_an_old_ack_between_two_equal_ones_updates_nothing(look: Look) -> None:
    # inputs__tls: frame 56 acknowledges 3575 with window 63723. 136 is a copy of 53, an old ACK with 64240; 139 is a
    # copy of 56. The current window has been 63723 since frame 56.
    row, segment, _ = look("inputs__tls.pcap", 139)
    assert segment.events == frozenset()
    assert "window_update" not in events(row)


def test_first_ack_of_a_one_way_capture_shrinks_nothing(comparisons: list[Comparison]) -> None:
    # gre-aruba: frame 5 is a SYN with window 64240, 6 the ACK of an answer that was not captured, with 1028 × 256 =
    # 263,168. Before frame 6 the server's sequence numbers are unknown, so no edge can have moved left.
    (comparison,) = (one for one in comparisons if one.name.endswith("gre-aruba.pcap"))
    first_acks = [one.frame for one in comparison.segments if one.seq == after_syn(comparison, one.frame)]
    assert len(first_acks) >= 15
    assert [frame for frame in first_acks if "window_shrink" in events(dict(comparison.rows[frame]))] == []


def after_syn(comparison: Comparison, frame: int) -> int | None:
    """Return the sequence number after the SYN, if that is the connection's previous segment."""
    stream = next(one.stream for one in comparison.segments if one.frame == frame)
    before = [one for one in comparison.segments if one.stream == stream and one.frame < frame]
    return (before[0].seq + 1) % 2**32 if len(before) == 1 and before[0].flags & 0x02 else None


def test_unknown_scale_has_a_lower_bound(reference_captures: Path) -> None:
    # gtp9 has no SYN. After frame 14, [1, 8641) minus the 1441 that 6 acknowledged are in flight: 7,200 bytes, with a
    # window field of 2470. 2470 << 1 = 4,940 is too small, 2470 << 2 = 9,880 suffices. tshark: unknown.
    (path,) = (reference_captures / "real").rglob("*gtp9_unknown_or_too_short_payload.pcap")
    (connection,) = tcpwin.analyze(path).connections
    scale = connection.a_to_b.window_scale
    assert (scale.state, scale.shift, scale.shift_min, scale.shift_max) == ("unknown", None, 2, 14)


def test_nearly_full_windows_are_counted(comparisons: list[Comparison], reference_captures: Path) -> None:
    # sim_astf-param_tcp_rxbufsize_8k has five connections; the client advertises 8192. Frame 8 ends 7,240 bytes after
    # SND.UNA: 952 remain, less than a segment of 1448, and 9 is shortened to fit (window full). Neither tool marks 8;
    # tcpwin counts such segments: the 20 that debatable.csv lists, and the last of each connection, which leaves 674
    # (30, 63, 96, 129, 162).
    (comparison,) = (one for one in comparisons if one.name.endswith("rxbufsize_8k.pcap"))
    row = comparison.rows[8]
    assert row["bytes_in_flight"] == 7_240
    assert "window_full" not in events(dict(row))
    doubts = read_doubts(reference_captures / "debatable.csv")
    listed = {frame for name, frame, field in doubts if (name, field) == (comparison.name, "window_full")}
    connections = tcpwin.analyze(reference_captures / "real" / comparison.name).connections
    directions = [side for one in connections for side in (one.a_to_b, one.b_to_a)]
    assert len(listed) == 20
    assert sum(direction.window_near_full for direction in directions) == 20 + 5
