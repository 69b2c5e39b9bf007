"""Each kind of difference in bytes in flight, at one place in the reference captures.

Sequence numbers in the comments count from the connection's ISN, as in Wireshark.
"""

from __future__ import annotations

from cases import all_cases
from oracle import kinds
from oracle.conftest import Look

UNKNOWN = (None, None)


@all_cases(
    ("name", "frame", "ours", "theirs", "expected"),
    [
        # gre-aruba has only the clients' packets. Frame 5 is the SYN, 6 ACK 1, 7 sends 416 bytes from 1. No packet
        # shows whether the server received them; frame 6 proves that the SYN was acknowledged. tshark counts both.
        ("gre-aruba.pcap", 7, UNKNOWN, 417, {kinds.ONE_WAY}),
        # Frames 28 and 36 send [1, 422) and [422, 857). In the 5.6 s between them the server answered with 995 bytes
        # (ACK 996 in 29), so it had the first request. tshark adds up both requests and the SYN: 857.
        ("gre-aruba.pcap", 36, UNKNOWN, 857, {kinds.ONE_WAY}),
        # The connection of frame 57 has no SYN in the file. Frame 57, its first packet, has 517 bytes. Earlier data,
        # and how much of it is still in flight, is unknown. Frame 58 acknowledges 518, so the 93 bytes of 61 are known
        # to be in flight.
        ("inputs__tls.pcap", 57, UNKNOWN, 517, {kinds.NOTHING_ACKED}),
        ("inputs__tls.pcap", 61, (93, 93), 93, set()),
        # The client's frame 61 sends [518, 611); the server's 62 acknowledges 1191, so [611, 1191) was sent but never
        # captured. Frame 144 is a copy of 61, because the file contains the connection twice. SND.MAX is at least 1191.
        # tshark shows the 93 bytes of a segment that frame 62 acknowledged.
        ("inputs__tls.pcap", 144, UNKNOWN, 93, {kinds.SENT_IS_UNKNOWN}),
        # comp006: SND.UNA 50051, SND.MAX 60061: 10,010 bytes in flight. Blocks arrived in frames 86 (51481:52911), 88
        # (55771:57201) and 90 (58631:60061, 55771:57201), so 3 × 1,430 = 4,290 bytes are SACKed and 5,720 are in the
        # pipe. Frame 90 repeats only one of the two older blocks, although both would fit. tshark: 10,010 − 2,860.
        ("comp006.trace", 91, (10_010, 5_720), 7_150, {kinds.LAST_BLOCKS}),
        # ndt: timestamps leave space for three blocks. Frame 3169 ends at 4440903, 3172 at 4445655, SND.UNA is 4161723:
        # 283,932 bytes. Frame 3171 reports 4202115:4203303, 4199739:4200927 and 4177167:4198551 (23,760 bytes), but no
        # longer 4165287:4175979 (10,692) and 4162911:4164099 (1,188) of frame 3168. 283,932 − 23,760 − 11,880 =
        # 248,292; tshark: 283,932 − 23,760.
        ("000000000121C1A0.pcap", 3172, (283_932, 248_292), 260_172, {kinds.LAST_BLOCKS}),
        # comp018: SND.UNA 57934, SND.MAX 97974: 40,040 bytes. Frame 109 reports four blocks, 96544:97974, 89394:90824,
        # 75094:79384 and 65084:67944: 1,430 + 1,430 + 4,290 + 2,860 = 10,010 bytes, all that was SACKed until then.
        # tshark does not subtract the last of the four: 40,040 − 7,150.
        ("comp018.trace", 110, (40_040, 30_030), 32_890, {kinds.FOURTH_BLOCK}),
        # Frame 111 adds 59364:60794 and has no space for 65084:67944: 40,040 − 11,440 = 28,600. tshark forgets that
        # block and ignores the last of the other four, 75094:79384: 40,040 − 4,290 = 35,750.
        ("comp018.trace", 112, (40_040, 28_600), 35_750, {kinds.FOURTH_BLOCK, kinds.LAST_BLOCKS}),
        # pppoe-over-qinq: frame 10 acknowledges 3337, everything sent. Frames 13, 15 and 16 resend [1, 1441), [2881,
        # 3337) and [1441, 2881), so nothing is in flight. Frame 14 acknowledges 3337 and SACKs 1:1441, below the ACK: a
        # D-SACK (RFC 2883 §4). After 16 tshark's list has [1441, 3337), minus the 1,440 of the D-SACK: 456.
        ("pppoe-over-qinq.pcap", 13, (0, 0), 1_440, {kinds.ACKED_AGAIN}),
        ("pppoe-over-qinq.pcap", 16, (0, 0), 456, {kinds.ACKED_AGAIN, kinds.DUPLICATE_SACK}),
        # After 15 the list has [2881, 3337), 456 bytes, from which 1,440 cannot be subtracted: no value.
        ("pppoe-over-qinq.pcap", 15, (0, 0), None, {kinds.BLOCKS_EXCEED}),
        # one_tcp_stream_max_seq: the keep-alive in 17 has the byte before SND.NXT, which frame 9 acknowledged.
        ("one_tcp_stream_max_seq.pcap", 17, (0, 0), 1, {kinds.ACKED_AGAIN}),
        # The server acknowledges 371 and SACKs 1143864500:1143864501 in raw numbers. A receiver that has byte 370 of
        # frame 17 answers with a D-SACK, 370:371; a middlebox on the path translates the ACK but not the SACK (frame 9
        # has such a block too). Frame 19 sends 1,420 new bytes, none of which is reported. tshark: 1,419.
        ("one_tcp_stream_max_seq.pcap", 19, (1_420, 1_420), 1_419, {kinds.STRAY_BLOCK}),
        # tor_bl: frames 153 and 155 have ACK 87805. Of the following data, 154 [90685, 92125) and 156 [92125, 93565)
        # were captured; [87805, 90685) had been sent before and was lost (212 and 214 begin to resend it). 93565 −
        # 87805 = 5,760 bytes are in flight, minus the 1,440 that 155 SACKs. tshark's list begins at 90685: 93565 −
        # 90685 − 1,440.
        ("tor_bl.pcap", 156, (5_760, 4_320), 1_440, {kinds.NEVER_CAPTURED}),
        # reordering-via-proximity: frame 316 has ACK 283140; 307 was the first segment after the hole [283140, 286060).
        # Frame 317 ends at 296280: 13,140 bytes in flight. tshark: 296280 − 286060 = 10,220. Frames 332 and 333 resend
        # the 2,920 bytes after six duplicate ACKs, which proves that they had been sent.
        ("reordering-via-proximity.trace", 317, (13_140, 13_140), 10_220, {kinds.NEVER_CAPTURED}),
        # Frame 74 acknowledges 66092, 75 sends [71932, 73392). [66092, 71932) is missing from the capture but in
        # flight: 73392 − 66092 = 7,300. tshark has no value until the ACK in 95; 94 ends at 101132: 35,040.
        ("reordering-via-proximity.trace", 75, (7_300, 7_300), None, {kinds.SILENT}),
        ("reordering-via-proximity.trace", 94, (35_040, 35_040), None, {kinds.SILENT}),
        # fack018: frame 76 sends [48621, 49493), 80 the FIN at 49493; 81 acknowledges 48621; 82 resends the 872 bytes.
        # 872 bytes of payload are in flight; the FIN takes a sequence number but no byte. tshark subtracts a FIN only
        # in the frame that carries it.
        ("fack018.trace", 82, (872, 872), 873, {kinds.FIN_IS_A_BYTE}),
        # fuzz-72 has flipped bits. Frame 12 begins at 131153 instead of 81 (81 + 2^17), beyond every window, and no
        # other packet confirms it: tshark treats it as data, tcpwin as damage. Frame 16 acknowledges 141, 19 is [177,
        # 186): 186 − 141 = 45.
        ("fuzz-72.pcap", 19, (45, 45), 130_985, set()),
        # Frame 24 acknowledges 276, more than was captured: data sent beyond it is unknown, and 25 is [240, 249). Frame
        # 23, which acknowledges 1,979,711,719, emptied tshark's list.
        ("fuzz-72.pcap", 25, UNKNOWN, 9, set()),
    ],
)
def test_flight(
    look: Look, name: str, frame: int, ours: tuple[int, int] | tuple[None, None], theirs: int | None, expected: set[str]
) -> None:
    """Compare bytes in flight and pipe with the packets, tshark's value with its table, and name the difference."""
    row, segment, found = look(name, frame, "bytes_in_flight")
    assert (row["bytes_in_flight"], row["pipe"]) == ours
    assert segment.bytes_in_flight == theirs
    assert found == expected
