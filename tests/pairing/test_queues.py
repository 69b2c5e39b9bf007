"""A capture whose times differ by direction, as with several receive queues: arrivals are stamped too early.

A packet then seems to arrive before it left, and an answer to precede its question. Losses stay exact; if times do not
show which point is nearer to which host, losses do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from pairing.packets import Packet, read, segment, write
from pairing.pairs import ack_direction, data_direction, frames_by_fate

import tcpwin
from tcpwin.render.comparing.pairing import render_pairing

WILD = Path(__file__).parents[2] / "captures" / "wild"
SENDER, RECEIVER = WILD / "lossy-path.pcapng.gz", WILD / "lossy-path-receiver.pcap.gz"
DATA_SOURCE = "192.0.2.1"
"""The sending host (captures/wild/lossy-path.toml)."""
ROUND_TRIP_US = 30_000
"""The relay's delay, 15 ms each way."""
SYN, ACK = 0x02, 0x10


@pytest.fixture(scope="module")
def truth() -> set[int]:
    pairing = tcpwin.pair(SENDER, RECEIVER)
    return frames_by_fate(pairing, data_direction(pairing))["lost"]


def earlier(packets: Iterable[Packet], by_us: int, source: str) -> list[Packet]:
    """Return packets of a source with earlier timestamps, in order of time."""
    own = bytes(map(int, source.split(".")))
    moved = [
        replace(each, time_ns=each.time_ns - by_us * 1_000) if each.data[12:16] == own else each for each in packets
    ]
    return sorted(moved, key=lambda each: each.time_ns)


@pytest.mark.parametrize("beyond_us", [-5_000, -100, 0, 50, 200, 500, 900])
def test_losses_are_exact_though_answers_precede_their_questions(
    beyond_us: int, truth: set[int], tmp_path: Path
) -> None:
    assert len(truth) == 12
    bent = write(tmp_path / "b.pcap", earlier(read(RECEIVER), ROUND_TRIP_US + beyond_us, DATA_SOURCE))

    pairing = tcpwin.pair(SENDER, bent)

    [connection] = pairing.connections
    data, acks = data_direction(pairing), ack_direction(pairing)
    assert (data.leaves_at, acks.leaves_at) == ("a", "b")
    assert frames_by_fate(pairing, data)["lost"] == truth
    assert (data.lost, acks.lost, connection.unknown) == (12, 0, 0)
    assert data.resent.lost == data.retransmissions == 12
    assert pairing.missed == (0, 0)
    # No clock was set, and no impossible time is reported.
    assert pairing.clock.steps_ns == ()
    assert "delay -" not in "\n".join(render_pairing(pairing))


def test_a_handshake_of_which_the_answer_comes_first(tmp_path: Path) -> None:
    """The server's capture has its SYN/ACK 20 us before the SYN, and the client's first data before its ACK."""
    left = [
        segment(0, client=True, seq=99, ack=0, flags=SYN, ip_id=10),
        segment(0.06, client=False, seq=499, ack=100, flags=SYN | ACK, ip_id=20),
        segment(0.07, client=True, seq=100, ack=500, flags=ACK, ip_id=11),
        segment(0.08, client=True, seq=100, ack=500, flags=ACK, payload=1000, ip_id=12),
        segment(0.2, client=False, seq=500, ack=1100, flags=ACK, ip_id=21),
    ]
    times_ms = [0.04, 0.02, 0.09, 0.1, 0.16]
    came = [replace(each, time_ns=left[0].time_ns + round(ms * 1e6)) for each, ms in zip(left, times_ms, strict=True)]
    came.sort(key=lambda each: each.time_ns)

    pairing = tcpwin.pair(write(tmp_path / "a.pcap", left), write(tmp_path / "b.pcap", came))

    [connection] = pairing.connections
    assert not pairing.unpaired
    assert sorted(each.sent for each in connection.directions) == [2, 3]
    assert connection.lost == connection.unknown == 0
