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
        # gre-aruba holds only what the clients sent. 5: SYN. 6: ACK 1. 7: 416 bytes from 1. Whether the server
        # had them at any later time, no packet of it can say; that the SYN was acknowledged, frame 6 proves.
        # tshark counts both.
        ("gre-aruba.pcap", 7, UNKNOWN, 417, {kinds.ONE_WAY}),
        # 28 and 36 send [1, 422) and [422, 857), with 5.6 s and an answer of 995 bytes (ACK 996 in 29) between
        # them: the server had the first request, or it would not have answered. tshark adds them up, with the SYN: 857.
        ("gre-aruba.pcap", 36, UNKNOWN, 857, {kinds.ONE_WAY}),
        # The connection of frame 57 has no SYN in the file. 57 is its first packet: 517 bytes. What went before
        # it, and how much of that is still on the way, is not known; 58 acknowledges 518, and 61 has its 93
        # bytes in flight, known.
        ("inputs__tls.pcap", 57, UNKNOWN, 517, {kinds.NOTHING_ACKED}),
        ("inputs__tls.pcap", 61, (93, 93), 93, set()),
        # The client's 61 sends [518, 611), the server's 62 acknowledges 1191: [611, 1191) was sent, never
        # captured. 144 is 61 once more (the file holds the connection twice). SND.MAX is at 1191 or behind it;
        # tshark shows the 93 bytes of a segment that frame 62 acknowledged.
        ("inputs__tls.pcap", 144, UNKNOWN, 93, {kinds.SENT_IS_UNKNOWN}),
        # comp006: SND.UNA 50051, SND.MAX 60061: 10,010 in flight. Blocks came in 86 (51481:52911), 88
        # (55771:57201) and 90 (58631:60061, 55771:57201): 3 × 1,430 = 4,290 are SACKed, 5,720 are in the pipe.
        # 90 repeats one of the two older blocks, though there was room for both. tshark: 10,010 − 2,860.
        ("comp006.trace", 91, (10_010, 5_720), 7_150, {kinds.LAST_BLOCKS}),
        # ndt: timestamps leave room for three blocks. 3169 ends at 4440903, 3172 at 4445655, SND.UNA is
        # 4161723: 283,932. 3171 reports 4202115:4203303, 4199739:4200927, 4177167:4198551 (23,760 bytes), no
        # more 4165287:4175979 (10,692) and 4162911:4164099 (1,188) of 3168. 283,932 − 23,760 − 11,880 =
        # 248,292; tshark 283,932 − 23,760.
        ("000000000121C1A0.pcap", 3172, (283_932, 248_292), 260_172, {kinds.LAST_BLOCKS}),
        # comp018: SND.UNA 57934, SND.MAX 97974: 40,040. 109 reports four blocks: 96544:97974, 89394:90824,
        # 75094:79384, 65084:67944, that is 1,430 + 1,430 + 4,290 + 2,860 = 10,010, all that was SACKed until
        # then. tshark leaves the last of the four in: 40,040 − 7,150.
        ("comp018.trace", 110, (40_040, 30_030), 32_890, {kinds.FOURTH_BLOCK}),
        # 111 adds 59364:60794 and has no room for 65084:67944: 40,040 − 11,440 = 28,600. tshark forgets the one
        # and passes over the last of the other four, 75094:79384: 40,040 − 4,290 = 35,750.
        ("comp018.trace", 112, (40_040, 28_600), 35_750, {kinds.FOURTH_BLOCK, kinds.LAST_BLOCKS}),
        # pppoe-over-qinq: 10 acknowledges 3337, all that was sent. 13, 15, 16 send [1, 1441), [2881, 3337),
        # [1441, 2881) again: nothing is in flight. 14 acknowledges 3337 and SACKs 1:1441, below the ACK: a
        # D-SACK (RFC 2883 §4). tshark's list holds [1441, 3337) after 16, and off go the 1,440 of the D-SACK:
        # 456.
        ("pppoe-over-qinq.pcap", 13, (0, 0), 1_440, {kinds.ACKED_AGAIN}),
        ("pppoe-over-qinq.pcap", 16, (0, 0), 456, {kinds.ACKED_AGAIN, kinds.DUPLICATE_SACK}),
        # After 15 the list holds [2881, 3337), 456 bytes, from which 1,440 cannot be taken: no value.
        ("pppoe-over-qinq.pcap", 15, (0, 0), None, {kinds.BLOCKS_EXCEED}),
        # one_tcp_stream_max_seq: the keep-alive of 17 has the byte before SND.NXT, acknowledged in 9.
        ("one_tcp_stream_max_seq.pcap", 17, (0, 0), 1, {kinds.ACKED_AGAIN}),
        # The server acknowledges 371 and SACKs 1143864500:1143864501, in raw numbers: a receiver that has the byte
        # of 17, 370, answers with a D-SACK, 370:371; a middlebox on the way translates the ACK and not the SACK
        # (9 has such a block, too). 19 sends 1,420 new bytes; nothing reports any of them. tshark: 1,419.
        ("one_tcp_stream_max_seq.pcap", 19, (1_420, 1_420), 1_419, {kinds.STRAY_BLOCK}),
        # tor_bl: ACK 87805 in 153 and 155. Of what follows, 154 [90685, 92125) and 156 [92125, 93565) came by;
        # [87805, 90685) was sent before and lost (212 and 214 begin to send it again). 93565 − 87805 = 5,760 bytes
        # are in flight, less the 1,440 that 155 SACKs. tshark's list begins at 90685: 93565 − 90685 − 1,440.
        ("tor_bl.pcap", 156, (5_760, 4_320), 1_440, {kinds.NEVER_CAPTURED}),
        # reordering-via-proximity: ACK 283140 in 316; 307 was the first segment behind the hole [283140,
        # 286060). 317 ends at 296280: 13,140 in flight. tshark: 296280 − 286060 = 10,220. That the 2,920 bytes
        # were sent, 332 and 333 show: they send them again after six duplicate ACKs.
        ("reordering-via-proximity.trace", 317, (13_140, 13_140), 10_220, {kinds.NEVER_CAPTURED}),
        # 74 acknowledges 66092, 75 sends [71932, 73392): [66092, 71932) is missing from the capture and in flight
        # all the same, 73392 − 66092 = 7,300. tshark has no value until an ACK comes, in 95; 94 ends at 101132:
        # 35,040.
        ("reordering-via-proximity.trace", 75, (7_300, 7_300), None, {kinds.SILENT}),
        ("reordering-via-proximity.trace", 94, (35_040, 35_040), None, {kinds.SILENT}),
        # fack018: 76 sends [48621, 49493), 80 the FIN at 49493; 81 acknowledges 48621. 82 sends the 872 bytes
        # again. Payload in flight: 872; the FIN is a sequence number and no byte. tshark takes a FIN off in the
        # frame that carries it only.
        ("fack018.trace", 82, (872, 872), 873, {kinds.FIN_IS_A_BYTE}),
        # fuzz-72 has flipped bits. 12 begins at 131153 where 81 was due (81 + 2^17), beyond what any window allows and
        # said once: tshark takes it for data, tcpwin for damage. 16 acknowledges 141, 19 is [177, 186): 186 − 141 = 45.
        ("fuzz-72.pcap", 19, (45, 45), 130_985, set()),
        # 24 acknowledges 276, more than was captured: what was sent beyond it is unknown, and 25 is [240, 249).
        # tshark's list was emptied by 23, which acknowledges 1,979,711,719.
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
