"""Consecutive connections between the same addresses and ports: each is paired with itself.

The second is the lab run repeated later, with other sequence numbers and IP ids, as a kernel chooses them each time.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pairing.packets import CYCLE, IP_BYTES, SACK, TIMESTAMPS, Packet, read, skewed, write
from pairing.pairs import captures, lost_frames
from spread import some_by_day

import tcpwin

SCENARIO = "loss1_cubic_sack1"
GAP_NS = 5_000_000
CLIENT, SERVER = 123_456_789, 3_210_987_654
"""Difference of both sides' sequence numbers in the second connection."""


def again(packets: list[Packet], later_ns: int, *, stamps: int = 777_777) -> list[Packet]:
    """Return a capture as of a later connection."""
    client = packets[0].ports[0]
    found = []
    for packet in packets:
        own, other = (CLIENT, SERVER) if packet.ports[0] == client else (SERVER, CLIENT)
        ack = int.from_bytes(packet.data[IP_BYTES + 8 : IP_BYTES + 12])
        is_ack = packet.flags & 0x10
        new = packet.with_tcp(4, ">II", (packet.seq + own) % CYCLE, (ack + other) % CYCLE if is_ack else ack)
        new = new.with_ip(4, ">H", (packet.ip_id + 4321) % 65_536)
        if (at := new.option(TIMESTAMPS)) is not None:
            value, echo = (int.from_bytes(new.data[at + place : at + place + 4]) for place in (2, 6))
            new = new.with_ip(at + 2, ">II", (value + stamps) % CYCLE, (echo + stamps) % CYCLE if echo else 0)
        if (at := new.option(SACK)) is not None:
            for place in range(at + 2, at + new.data[at + 1], 4):
                edge = int.from_bytes(new.data[place : place + 4])
                new = new.with_ip(place, ">I", (edge + other) % CYCLE)
        found.append(replace(new, time_ns=packet.time_ns + later_ns))
    return found


def both(stamps: int = 777_777) -> tuple[list[Packet], list[Packet], list[Packet], list[Packet]]:
    """Return the first and the second connection at both points."""
    sender, receiver = (read(capture) for capture in captures(SCENARIO))
    first_ns = min(sender[0].time_ns, receiver[0].time_ns)
    later_ns = max(sender[-1].time_ns, receiver[-1].time_ns) - first_ns + GAP_NS
    return sender, receiver, again(sender, later_ns, stamps=stamps), again(receiver, later_ns, stamps=stamps)


def lost_of(pairing: tcpwin.Pairing, number: int) -> set[int]:
    table = pairing.packets()
    mine = (table["connection"] == number) & (table["fate"] == "lost") & (table["frame_a"] > 0)
    return set(table["frame_a"][mine].tolist())


def check(pairing: tcpwin.Pairing, before: int, *, numbers: tuple[int, int] = (0, 1)) -> None:
    truth = lost_frames(SCENARIO)["data"]
    for number, more in zip(numbers, (0, before), strict=True):
        connection = pairing.connections[number]
        assert (connection.lost, connection.unknown) == (len(truth), 0)
        assert lost_of(pairing, number) == {frame + more for frame in truth}


@pytest.mark.parametrize("stamps", [777_777, 0])
@pytest.mark.parametrize("ahead_s", some_by_day([-3.0, 0.0, 3.0, 7200.0], of=2))
def test_each_connection_is_paired_with_itself(ahead_s: float, stamps: int, tmp_path: Path) -> None:
    first_a, first_b, second_a, second_b = both(stamps)
    a = write(tmp_path / "a.pcap", first_a + second_a)
    b = write(tmp_path / "b.pcap", skewed(first_b + second_b, 0, round(ahead_s * 1e9)))
    pairing = tcpwin.pair(a, b)
    assert len(pairing.connections) == 2
    check(pairing, len(first_a))
    assert abs(pairing.clock.offset_ns - ahead_s * 1e9) <= 10_000


@pytest.mark.parametrize("side", ["a", "b"])
@pytest.mark.parametrize("lacks", ["first", "second"])
def test_a_connection_missing_in_one_capture_gets_no_packet_of_another(lacks: str, side: str, tmp_path: Path) -> None:
    parts = both()
    left = {"a": list(parts[0] + parts[2]), "b": list(parts[1] + parts[3])}
    part = parts[(2 if lacks == "first" else 0) + (side == "b")]
    left[side] = part
    pairing = tcpwin.pair(*(write(tmp_path / f"{name}.pcap", packets) for name, packets in left.items()))
    [connection] = [each for each in pairing.connections if any(one.delivered for one in each.directions)]
    truth = lost_frames(SCENARIO)["data"]
    assert (connection.lost, connection.unknown) == (len(truth), 0)
