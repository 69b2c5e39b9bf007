"""Causes of retransmissions against the lab's truth: the kernels' counters and the captures of both ends."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from lab.resends import resends
from pairing.packets import Packet, read, segment, thinned, write
from pairing.pairs import bent, captures, data_direction, lost_frames, run_of
from spread import some_by_day

import tcpwin
from tcpwin.render.comparing.pairing import render_pairing

Rung = tuple[list[Packet], list[Packet]]

SYN, ACK = 0x02, 0x10
LOSSY = ("loss1_cubic_sack1", "loss1_reno_sack0", "loss1_reorder_cubic_sack1")
REFUSING = ("oscil_10mbit_300ms_170p2_guard",)
# Names of tests/lab/resends. Data that the receiver had makes a retransmission needless here, because these runs lose
# no ACK.
TRUTH = {"lost": "lost", "refused": "refused", "arrived": "needless"}


@pytest.mark.parametrize("scenario", [*LOSSY, *REFUSING])
def test_each_cause_is_the_labs(scenario: str) -> None:
    pairing = tcpwin.pair(*captures(scenario))
    data = data_direction(pairing)
    table = pairing.packets()
    mine = (table["direction"] == data.index) & table["is_resend"]
    found = dict(zip(table["frame_a"][mine].tolist(), table["cause"][mine].tolist(), strict=True))
    truth = {each.passage.left.frame: TRUTH[each.fate] for each in resends(run_of(scenario))}
    assert found.keys() == truth.keys()
    wrong = {frame: (cause, truth[frame]) for frame, cause in found.items() if cause not in (truth[frame], "unknown")}
    assert not wrong
    assert Counter(found.values())["unknown"] <= 0.02 * len(found)
    assert data.retransmissions == len(truth)


@pytest.mark.parametrize("scenario", some_by_day(LOSSY, first=1))
def test_a_lost_copy_is_named(scenario: str) -> None:
    """The frame of the newest earlier copy."""
    pairing = tcpwin.pair(*captures(scenario))
    table = pairing.packets()
    named = table["lost_frame"] > 0
    found = dict(zip(table["frame_a"][named].tolist(), table["lost_frame"][named].tolist(), strict=True))
    lost = [each for each in resends(run_of(scenario)) if each.fate == "lost"]
    assert {each.passage.left.frame: each.earlier[-1].left.frame for each in lost}.items() <= found.items()


def both(time_ms: float, *, to_a: bool = True, to_b: bool = True, **what: Any) -> Rung:
    """Return a packet at each point, 10 ms and one router apart."""
    left = segment(time_ms, **what)
    came = segment(time_ms + 10, **what, ttl=63)
    at_a, at_b = (left, came) if what["client"] else (came, left)
    return [at_a] * to_a, [at_b] * to_b


def written(folder: Path, ladder: list[Rung]) -> list[Path]:
    return [
        write(folder / f"{name}.pcap", [packet for rung in ladder for packet in rung[side]])
        for side, name in enumerate("ab")
    ]


def test_lost_acks_that_made_a_sender_repeat(tmp_path: Path) -> None:
    """The client's data arrives, the server's ACK is lost, and the client resends it."""
    ladder = [
        both(0, client=True, seq=99, ack=0, flags=SYN, ip_id=10),
        both(10, client=False, seq=499, ack=100, flags=SYN | ACK),
        both(20, client=True, seq=100, ack=500, flags=ACK, ip_id=11),
        both(21, client=True, seq=100, ack=500, flags=ACK, payload=1000, ip_id=12),
        both(31, client=False, seq=500, ack=1100, flags=ACK, ip_id=20, to_a=False),
        both(321, client=True, seq=100, ack=500, flags=ACK, payload=1000, ip_id=13),
        both(331, client=False, seq=500, ack=1100, flags=ACK, ip_id=21),
        both(400, client=True, seq=1100, ack=500, flags=ACK, payload=10, ip_id=14),
        both(410, client=False, seq=500, ack=1110, flags=ACK, ip_id=22),
    ]
    pairing = tcpwin.pair(*written(tmp_path, ladder))
    [connection] = pairing.connections
    data, acks = connection.directions
    assert (data.sent, data.lost, data.unknown) == (5, 0, 0)
    assert (acks.sent, acks.lost, acks.unknown) == (4, 1, 0)
    assert (data.retransmissions, data.resent.ack_lost) == (1, 1)
    table = pairing.packets()
    assert table["cause"][table["is_resend"]].tolist() == ["ack_lost"]
    assert abs(pairing.clock.offset_ns) <= 1_000


def test_a_packet_dropped_beyond_the_second_point(tmp_path: Path) -> None:
    """Point b is mid-path: the first data passes it, the server behind it requests the data again, and it is resent.

    Nothing shows whether the server or the rest of the path dropped it, so neither is claimed.
    """
    ladder = [
        both(0, client=True, seq=99, ack=0, flags=SYN, ip_id=10),
        both(10, client=False, seq=499, ack=100, flags=SYN | ACK),
        both(20, client=True, seq=100, ack=500, flags=ACK, ip_id=11),
        both(21, client=True, seq=100, ack=500, flags=ACK, payload=1000, ip_id=12),
        both(22, client=True, seq=1100, ack=500, flags=ACK, payload=1000, ip_id=13),
        both(42, client=False, seq=500, ack=100, flags=ACK, ip_id=20),
        both(321, client=True, seq=100, ack=500, flags=ACK, payload=1000, ip_id=14),
        both(341, client=False, seq=500, ack=2100, flags=ACK, ip_id=21),
    ]
    pairing = tcpwin.pair(*written(tmp_path, ladder))
    [connection] = pairing.connections
    data = connection.directions[0]
    assert (data.sent, data.lost, data.retransmissions, data.resent.refused) == (5, 0, 1, 1)
    assert "1 retransmission: 1 after packets dropped beyond b" in "\n".join(render_pairing(pairing))


def sent_again_at_once(*, duplicate: bool, first_is_seen: bool = True) -> list[Rung]:
    """The first data arrives but is resent before it is acknowledged: the next ACK shows which copy it answers."""
    seen = {"to_a": first_is_seen, "to_b": first_is_seen}
    return [
        both(0, client=True, seq=99, ack=0, flags=SYN, ip_id=10),
        both(10, client=False, seq=499, ack=100, flags=SYN | ACK),
        both(20, client=True, seq=100, ack=500, flags=ACK, ip_id=11),
        both(121, client=True, seq=100, ack=500, flags=ACK, payload=1000, ip_id=12, **seen),
        both(122, client=True, seq=1100, ack=500, flags=ACK, payload=1000, ip_id=13),
        both(126, client=True, seq=100, ack=500, flags=ACK, payload=1000, ip_id=14),
        both(140, client=False, seq=500, ack=2100, flags=ACK, ip_id=20, sack=((100, 1100),) if duplicate else ()),
    ]


@pytest.mark.parametrize(("duplicate", "cause"), [(True, "needless"), (False, "unknown")])
def test_what_came_is_dropped_only_where_the_receiver_says_so(duplicate: bool, cause: str, tmp_path: Path) -> None:
    """A duplicate SACK of exactly these bytes, below the acknowledgment (RFC 2883 §4.1), proves that it had them."""
    pairing = tcpwin.pair(*written(tmp_path, sent_again_at_once(duplicate=duplicate)))
    table = pairing.packets()
    assert table["cause"][table["is_resend"]].tolist() == [cause]
    resent = pairing.connections[0].directions[0].resent
    assert (resent.refused, getattr(resent, cause)) == (0, 1)
    assert "Dropped beyond" not in "\n".join(render_pairing(pairing))


def test_what_neither_capture_has_was_not_dropped_beyond(tmp_path: Path) -> None:
    pairing = tcpwin.pair(*written(tmp_path, sent_again_at_once(duplicate=False, first_is_seen=False)))
    resent = pairing.connections[0].directions[0].resent
    assert (resent.refused, resent.unknown) == (0, 1)


@pytest.mark.parametrize("scenario", some_by_day(LOSSY[:2], of=2))
def test_captures_with_gaps_at_both_ends_prove_no_drop_beyond(scenario: str, tmp_path: Path) -> None:
    """These receivers dropped nothing: each previous copy was lost, or missed by both captures."""
    a, b = (lambda packets, seed=seed: thinned(packets, 0.3, seed) for seed in (3, 4))
    resent = data_direction(bent(scenario, tmp_path, a=a, b=b)).resent
    assert resent.refused == 0
    assert resent.lost > 10


def test_captures_with_gaps_at_both_ends_tell_no_false_drop_beyond(tmp_path: Path) -> None:
    """This receiver drops old segments (PAWS): the complete captures show that a copy of each arrived."""
    scenario = LOSSY[2]
    sender = read(captures(scenario)[0])
    thin = thinned(sender, 0.3, 3)
    pairing = bent(scenario, tmp_path, a=lambda _: thin, b=lambda packets: thinned(packets, 0.3, 4))
    data, table = data_direction(pairing), pairing.packets()
    mine = (table["direction"] == data.index) & (table["cause"] == "refused") & (table["frame_a"] > 0)
    packets_again = [thin[int(frame) - 1] for frame in table["frame_a"][mine]]
    lost = lost_frames(scenario)["data"]
    assert len(packets_again) > 10
    for again in packets_again:
        before = [each for each in sender if each.seq == again.seq and each.payload_bytes and each.frame < again.frame]
        assert any(each.frame not in lost for each in before)


def test_a_loss_soon_after_the_handshake_is_lost(tmp_path: Path) -> None:
    """A SYN in both captures shows that both were running from then on."""
    ladder = [
        both(0, client=True, seq=99, ack=0, flags=SYN, ip_id=10),
        both(1, client=False, seq=499, ack=100, flags=SYN | ACK),
        both(11, client=True, seq=100, ack=500, flags=ACK, ip_id=11),
        both(12, client=True, seq=100, ack=500, flags=ACK, payload=1000, ip_id=12, to_b=False),
        both(13, client=True, seq=1100, ack=500, flags=ACK, payload=1000, ip_id=13),
        both(321, client=True, seq=100, ack=500, flags=ACK, payload=1000, ip_id=14),
        both(341, client=False, seq=500, ack=2100, flags=ACK, ip_id=21),
    ]
    data = tcpwin.pair(*written(tmp_path, ladder)).connections[0].directions[0]
    assert (data.lost, data.unknown, data.resent.lost) == (1, 0, 1)


def test_handshakes_that_nothing_but_time_tells_apart(tmp_path: Path) -> None:
    """Linux sends SYN-ACKs with IP id 0. The first is lost and the second arrives: a second is not a delay."""
    ladder = [
        both(0, client=True, seq=99, ack=0, flags=SYN, ip_id=10),
        both(10, client=False, seq=499, ack=100, flags=SYN | ACK, to_a=False),
        both(1000, client=True, seq=99, ack=0, flags=SYN, ip_id=11),
        both(1010, client=False, seq=499, ack=100, flags=SYN | ACK),
        both(1020, client=True, seq=100, ack=500, flags=ACK, ip_id=12),
        both(1021, client=True, seq=100, ack=500, flags=ACK, payload=1000, ip_id=13),
        both(1031, client=False, seq=500, ack=1100, flags=ACK, ip_id=21),
    ]
    pairing = tcpwin.pair(*written(tmp_path, ladder))
    acks = pairing.connections[0].directions[1]
    assert (acks.sent, acks.delivered, acks.lost + acks.unknown) == (3, 2, 1)
    assert acks.delay.most_ns <= 10_100_000
    assert abs(pairing.clock.offset_ns) <= 1_000


def test_a_packet_that_comes_late_does_not_hide_what_was_lost() -> None:
    """One segment is 6 ms late over a path of 30 µs, which does not move the clocks apart.

    The captures are of a simulated sender without SACK. In the server's frame 242, one of 13 segments was lost. It was
    resent in frame 293 and acknowledged a millisecond later, which does not prove that the first copy arrived.
    """
    folder = Path(__file__).parent / "captures"
    pairing = tcpwin.pair(*(folder / f"late-and-joined-{host}.pcap.gz" for host in ("client", "server")))
    [data] = [each for each in pairing.connections[0].directions if each.leaves_at == "b"]
    assert (data.missed_at_target, data.missed_at_source) == (0, 0)
    table = pairing.packets()
    fates = table["fate"][(table["frame_b"] == 242) & (table["frame_a"] == 0)].tolist()
    assert fates in (["lost"], ["unknown"])


@pytest.mark.parametrize("gone", [range(0), range(4, 13_000, 21)], ids=["whole", "far lacks some"])
def test_a_flight_of_many_segments_is_exact(gone: range, tmp_path: Path) -> None:
    """Every third of 13,000 segments in flight is lost and sent again; the far capture lacks some of the others."""
    size, count = 1000, 13_000
    lost = range(2, count, 3)
    at = [100 + size * each for each in range(count + 3)]
    ladder = [
        both(0, client=True, seq=99, ack=0, flags=SYN, ip_id=10),
        both(10, client=False, seq=499, ack=100, flags=SYN | ACK),
        both(20, client=True, seq=100, ack=500, flags=ACK, ip_id=11),
    ]
    for each in range(count):
        to_b = each not in lost and each not in gone
        data = {"client": True, "seq": at[each], "ack": 500, "flags": ACK, "payload": size}
        ladder.append(both(40 + each / 100, **data, ip_id=12 + each, to_b=to_b))
        if each not in lost:
            pairs = [n for n in range(each - each % 3, max(each - 9, 0), -3) if n < each or each % 3 == 0]
            sack = tuple((at[n], at[min(n + 2, each + 1)]) for n in pairs)
            ack = at[min(each + 1, 2)]
            ladder.append(both(50.001 + each / 100, client=False, seq=500, ack=ack, flags=ACK, sack=sack))
    for number, each in enumerate(lost):
        data = {"client": True, "seq": at[each], "ack": 500, "flags": ACK, "payload": size}
        ladder.append(both(300 + number / 50, **data, ip_id=20_000 + number))
        ack = at[min(each + 3, count)]
        ladder.append(both(310.001 + number / 50, client=False, seq=500, ack=ack, flags=ACK))
    sides = [sorted((p for rung in ladder for p in rung[side]), key=lambda p: p.time_ns) for side in (0, 1)]
    ends = [write(tmp_path / f"{name}.pcap", side) for name, side in zip("ab", sides, strict=True)]
    for captured in (ends, ends[::-1]):
        data_of = data_direction(tcpwin.pair(*captured))
        assert (data_of.lost, data_of.missed_at_target, data_of.unknown) == (len(lost), len(gone), 0)
        assert data_of.retransmissions == data_of.resent.lost == len(lost)
