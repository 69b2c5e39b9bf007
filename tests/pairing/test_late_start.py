"""The second capture begins mid-transfer, during duplicate ACKs: similar packets, but not the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from pairing.packets import read, write
from spread import some_by_day

import tcpwin

WILD = Path(__file__).parents[2] / "captures" / "wild"


DELAY_NS = 15_000_000
"""The relay's delay each way (captures/wild/lossy-path.toml). Both ends are namespaces of one host with one clock."""
LATE_NS = DELAY_NS // 10
"""A sleeping relay wakes late, never early; a mismatched packet is off by a round trip or more."""


# The receiver's capture has duplicate ACKs of one number from packet 127 on, and of others up to 700.
@pytest.mark.parametrize("first", [*range(120, 700, 20), *range(315, 327)])
def test_duplicate_acks_are_not_taken_for_each_other(first: int, tmp_path: Path) -> None:
    """No field changes between the two points, both hosts share one clock, and no packet is faster than the path."""
    later = write(tmp_path / "later.pcap", read(WILD / "lossy-path-receiver.pcap.gz")[first:])

    pairing = tcpwin.pair(WILD / "lossy-path.pcapng.gz", later)

    (connection,) = pairing.connections
    assert [direction.leaves_at for direction in connection.directions] == ["a", "b"]
    for direction in connection.directions:
        assert direction.changes == ()
        assert DELAY_NS <= direction.delay.least_ns <= direction.delay.most_ns <= DELAY_NS + LATE_NS
    assert len(pairing.clock.pieces) == 1
    # Half of the possible difference between the fastest packets of both directions.
    assert abs(pairing.clock.offset_ns) <= LATE_NS / 2
    assert pairing.clock.drift_ppm == 0


RUNS = Path(__file__).parents[2] / "captures" / "runs"


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    ("run", "first"),
    some_by_day([("loss1_reorder_cubic_sack1", 1229), ("loss1_reno_sack0", 900), ("loss1_reno_sack0", 4085)]),
)
def test_a_capture_beginning_at_a_repair_calls_no_lost_packet_delivered(
    run: str, first: int, swapped: bool, tmp_path: Path
) -> None:
    """The receiver's capture begins with the ACK of a retransmission, so only one direction's delay is known.

    The network dropped exactly the packets missing from the complete receiver's capture, in which each has a unique IP
    id.
    """
    sent, received = read(RUNS / run / "snd.pcap.gz"), read(RUNS / run / "rcv.pcap.gz")
    came = {(packet.ip_id, packet.seq, packet.ports) for packet in received}
    dropped = {frame for frame, packet in enumerate(sent, 1) if (packet.ip_id, packet.seq, packet.ports) not in came}
    assert dropped
    whole = write(tmp_path / "whole.pcap", sent)
    later = write(tmp_path / "later.pcap", received[first:])

    readings = [tcpwin.pair(later, whole) if swapped else tcpwin.pair(whole, later) for _ in range(3)]

    table = readings[0].packets()
    frames = table["frame_b" if swapped else "frame_a"]
    fates = dict(zip(frames.tolist(), table["fate"].tolist(), strict=True))
    assert {frame for frame in dropped if fates.get(frame) in ("delivered", "late")} == set()
    assert {frame for frame, fate in fates.items() if fate == "lost"} <= dropped
    # Each reading has new hash seeds, none of which may affect the result.
    assert [reading.to_dict() for reading in readings[1:]] == [readings[0].to_dict()] * 2
