"""Each kind of difference in bytes in flight, shown at one place in the reference captures.

Sequence numbers in the comments count from the connection's ISN, as Wireshark shows them; times are left
out.
"""

from __future__ import annotations

from oracle import kinds
from oracle.conftest import Look


def check(
    look: Look, name: str, frame: int, ours: tuple[int, int] | tuple[None, None], theirs: int | None
) -> kinds.Kinds:
    """Hold one frame against what the packets say (flight, pipe) and what tshark says; return the kinds."""
    row, segment, found = look(name, frame, "bytes_in_flight")
    assert (row["bytes_in_flight"], row["pipe"]) == ours
    assert segment.bytes_in_flight == theirs
    return found


def test_one_way_capture(look: Look) -> None:
    # gre-aruba holds only what the clients sent. 5: SYN. 6: ACK 1. 7: 416 bytes from 1. Whether the server
    # had them at any later time, no packet of it can say; that the SYN was acknowledged, frame 6 proves.
    # tshark counts both.
    assert check(look, "gre-aruba.pcap", 7, (None, None), 417) == {kinds.ONE_WAY}
    # 28 and 36 send [1, 422) and [422, 857), with 5.6 s and an answer of 995 bytes (ACK 996 in 29) between
    # them: the server had the first request, or it would not have answered. tshark adds them up, with the SYN: 857.
    assert check(look, "gre-aruba.pcap", 36, (None, None), 857) == {kinds.ONE_WAY}


def test_nothing_acknowledged_yet(look: Look) -> None:
    # The connection of frame 57 has no SYN in the file. 57 is its first packet: 517 bytes. What went before
    # it, and how much of that is still on the way, is not known; 58 acknowledges 518, and 61 has its 93
    # bytes in flight, known.
    assert check(look, "inputs__tls.pcap", 57, (None, None), 517) == {kinds.NOTHING_ACKED}
    assert check(look, "inputs__tls.pcap", 61, (93, 93), 93) == set()


def test_ack_of_data_that_was_never_captured(look: Look) -> None:
    # The client's 61 sends [518, 611), the server's 62 acknowledges 1191: [611, 1191) was sent, never
    # captured. 144 is 61 once more (the file holds the connection twice). SND.MAX is at 1191 or behind it;
    # tshark shows the 93 bytes of a segment that frame 62 acknowledged.
    assert check(look, "inputs__tls.pcap", 144, (None, None), 93) == {kinds.SENT_IS_UNKNOWN}


def test_the_last_ack_does_not_repeat_all_blocks(look: Look) -> None:
    # comp006: SND.UNA 50051, SND.MAX 60061: 10,010 in flight. Blocks came in 86 (51481:52911), 88
    # (55771:57201) and 90 (58631:60061, 55771:57201): 3 × 1,430 = 4,290 are SACKed, 5,720 are in the pipe.
    # 90 repeats one of the two older blocks, though there was room for both. tshark: 10,010 − 2,860.
    assert check(look, "comp006.trace", 91, (10_010, 5_720), 7_150) == {kinds.LAST_BLOCKS}
    # ndt: timestamps leave room for three blocks. 3169 ends at 4440903, 3172 at 4445655, SND.UNA is
    # 4161723: 283,932. 3171 reports 4202115:4203303, 4199739:4200927, 4177167:4198551 (23,760 bytes), no
    # more 4165287:4175979 (10,692) and 4162911:4164099 (1,188) of 3168. 283,932 − 23,760 − 11,880 =
    # 248,292; tshark 283,932 − 23,760.
    assert check(look, "000000000121C1A0.pcap", 3172, (283_932, 248_292), 260_172) == {kinds.LAST_BLOCKS}


def test_the_fourth_block(look: Look) -> None:
    # comp018: SND.UNA 57934, SND.MAX 97974: 40,040. 109 reports four blocks: 96544:97974, 89394:90824,
    # 75094:79384, 65084:67944, that is 1,430 + 1,430 + 4,290 + 2,860 = 10,010, all that was SACKed until
    # then. tshark leaves the last of the four in: 40,040 − 7,150.
    assert check(look, "comp018.trace", 110, (40_040, 30_030), 32_890) == {kinds.FOURTH_BLOCK}
    # 111 adds 59364:60794 and has no room for 65084:67944: 40,040 − 11,440 = 28,600. tshark forgets the one
    # and passes over the last of the other four, 75094:79384: 40,040 − 4,290 = 35,750.
    both = {kinds.FOURTH_BLOCK, kinds.LAST_BLOCKS}
    assert check(look, "comp018.trace", 112, (40_040, 28_600), 35_750) == both


def test_d_sack(look: Look) -> None:
    # pppoe-over-qinq: 10 acknowledges 3337, all that was sent. 13, 15, 16 send [1, 1441), [2881, 3337),
    # [1441, 2881) again: nothing is in flight. 14 acknowledges 3337 and SACKs 1:1441, below the ACK: a
    # D-SACK (RFC 2883 §4). tshark's list holds [1441, 3337) after 16, and off go the 1,440 of the D-SACK:
    # 456.
    found = check(look, "pppoe-over-qinq.pcap", 16, (0, 0), 456)
    assert found == {kinds.ACKED_AGAIN, kinds.DUPLICATE_SACK}
    # After 15 the list holds [2881, 3337), 456 bytes, from which 1,440 cannot be taken: no value.
    assert check(look, "pppoe-over-qinq.pcap", 15, (0, 0), None) == {kinds.BLOCKS_EXCEED}


def test_block_beyond_everything(look: Look) -> None:
    # one_tcp_stream_max_seq: the server acknowledges 371 and SACKs 1143864500:1143864501, in raw numbers.
    # 17 is a keep-alive with byte 370, which a receiver that has it answers with a D-SACK, 370:371; a
    # middlebox on the way translates the ACK and not the SACK (9 has such a block, too). 19 sends 1,420 new
    # bytes; nothing reports any of them. tshark: 1,419.
    assert check(look, "one_tcp_stream_max_seq.pcap", 19, (1_420, 1_420), 1_419) == {kinds.STRAY_BLOCK}


def test_bytes_never_captured(look: Look) -> None:
    # tor_bl: ACK 87805 in 153 and 155. Of what follows, 154 [90685, 92125) and 156 [92125, 93565) came by;
    # [87805, 90685) was sent before and lost (212 and 214 begin to send it again). 93565 − 87805 = 5,760 bytes
    # are in flight, less the 1,440 that 155 SACKs. tshark's list begins at 90685: 93565 − 90685 − 1,440.
    assert check(look, "tor_bl.pcap", 156, (5_760, 4_320), 1_440) == {kinds.NEVER_CAPTURED}
    # reordering-via-proximity: ACK 283140 in 316; 307 was the first segment behind the hole [283140,
    # 286060). 317 ends at 296280: 13,140 in flight. tshark: 296280 − 286060 = 10,220. That the 2,920 bytes
    # were sent, 332 and 333 show: they send them again after six duplicate ACKs.
    assert check(look, "reordering-via-proximity.trace", 317, (13_140, 13_140), 10_220) == {kinds.NEVER_CAPTURED}


def test_silence_behind_a_hole(look: Look) -> None:
    # reordering-via-proximity: 74 acknowledges 66092, 75 sends [71932, 73392): [66092, 71932) is missing
    # from the capture and in flight all the same, 73392 − 66092 = 7,300. tshark has no value until an ACK
    # comes, in 95; 94 ends at 101132: 35,040.
    name = "reordering-via-proximity.trace"
    assert check(look, name, 75, (7_300, 7_300), None) == {kinds.SILENT}
    assert check(look, name, 94, (35_040, 35_040), None) == {kinds.SILENT}


def test_acknowledged_bytes_sent_again(look: Look) -> None:
    # pppoe-over-qinq: 10 acknowledges 3337, 13 sends [1, 1441) again. Everything was acknowledged: nothing
    # is in flight.
    assert check(look, "pppoe-over-qinq.pcap", 13, (0, 0), 1_440) == {kinds.ACKED_AGAIN}
    # one_tcp_stream_max_seq: the keep-alive of 17 has the byte before SND.NXT, acknowledged in 9.
    assert check(look, "one_tcp_stream_max_seq.pcap", 17, (0, 0), 1) == {kinds.ACKED_AGAIN}


def test_fin_in_flight(look: Look) -> None:
    # fack018: 76 sends [48621, 49493), 80 the FIN at 49493; 81 acknowledges 48621. 82 sends the 872 bytes
    # again. Payload in flight: 872; the FIN is a sequence number and no byte. tshark takes a FIN off in the
    # frame that carries it only.
    assert check(look, "fack018.trace", 82, (872, 872), 873) == {kinds.FIN_IS_A_BYTE}


def test_damaged_numbers(look: Look) -> None:
    # fuzz-72 has flipped bits. 12 begins at 131153 where 81 was due (81 + 2^17), beyond what any window allows and said
    # once: tshark takes it for data, tcpwin for damage. 16 acknowledges 141, 19 is [177, 186): 186 − 141 = 45.
    assert check(look, "fuzz-72.pcap", 19, (45, 45), 130_985) == frozenset()
    # 24 acknowledges 276, more than was captured: what was sent beyond it is unknown, and 25 is [240, 249). tshark's
    # list was emptied by 23, which acknowledges 1,979,711,719.
    assert check(look, "fuzz-72.pcap", 25, (None, None), 9) == frozenset()
