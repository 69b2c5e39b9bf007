"""IPv6 has no IP ids, so only timestamps distinguish packets. Losses stay exact, and the clock's error bound holds."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from pairing.packets import ETHERNET, IP_BYTES, TIMESTAMPS, Packet, read, thinned
from pairing.pairs import captures, data_direction, frames_by_fate, lost_frames
from spread import some_by_day

import tcpwin

LOSSY = ("loss1_cubic_sack1", "loss1_reno_sack0", "loss1_reorder_cubic_sack1")
IN_ORDER = LOSSY[:2]
SERVER_PORT = 5201
JITTER_NS = 3_000_000
"""netem's jitter in the last run."""


def written(path: Path, packets: list[Packet], *, stamped: bool, prefix: bytes = b"\xfd") -> Path:
    """Write IPv4 packets with IPv6 headers, with or without timestamps, the server's address with a prefix."""
    out = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, ETHERNET)]
    for packet in packets:
        bare = packet if stamped else packet.without_option(TIMESTAMPS)
        ip, tcp = bare.data[:IP_BYTES], bare.data[IP_BYTES:]
        length = int.from_bytes(ip[2:4]) - IP_BYTES
        header = struct.pack(">IHBB", 6 << 28 | ip[1] << 20, length, 6, ip[8])
        begins = (prefix, b"\xfd") if packet.ports[0] == SERVER_PORT else (b"\xfd", prefix)
        for begin, address in zip(begins, (ip[12:16], ip[16:20]), strict=True):
            header += begin + bytes(12 - len(begin)) + address
        frame = bytes(12) + b"\x86\xdd" + header + tcp
        seconds, fraction = divmod(packet.time_ns, 1_000_000_000)
        out.append(struct.pack("<4I", seconds, fraction, len(frame), packet.wire_bytes + 34) + frame)
    path.write_bytes(b"".join(out))
    return path


def paired(scenario: str, folder: Path, *, stamped: bool, skipped: int = 0) -> tcpwin.Pairing:
    """Pair a run's captures, the receiver's of which begins later."""
    sender, receiver = (read(capture) for capture in captures(scenario))
    return tcpwin.pair(
        written(folder / "a.pcap", sender, stamped=stamped),
        written(folder / "b.pcap", receiver[skipped:], stamped=stamped),
    )


def check_clock(pairing: tcpwin.Pairing, scenario: str) -> None:
    """The lab has one clock; each piece states its maximum error."""
    assert pairing.clock.steps_ns == ()
    [piece] = pairing.clock.pieces
    assert abs(piece.offset_ns) <= piece.uncertainty_ns
    assert abs(piece.offset_ns) <= (10_000 if scenario in IN_ORDER else JITTER_NS)


@pytest.mark.parametrize("stamped", [True, False])
@pytest.mark.parametrize("scenario", some_by_day(LOSSY, first=1))
def test_losses_are_the_networks(scenario: str, stamped: bool, tmp_path: Path) -> None:
    pairing = paired(scenario, tmp_path, stamped=stamped)
    truth = lost_frames(scenario)["data"]
    assert frames_by_fate(pairing, data_direction(pairing))["lost"] == truth
    [connection] = pairing.connections
    assert (connection.lost, connection.unknown) == (len(truth), 0)
    assert not any(direction.changes for direction in connection.directions)
    check_clock(pairing, scenario)


@pytest.mark.parametrize("stamped", [True, False])
def test_a_prefix_that_is_translated(stamped: bool, tmp_path: Path) -> None:
    """RFC 6296: the client sees the server with another prefix."""
    sender, receiver = (read(capture) for capture in captures(LOSSY[0]))
    pairing = tcpwin.pair(
        written(tmp_path / "a.pcap", sender, stamped=stamped),
        written(tmp_path / "b.pcap", receiver, stamped=stamped, prefix=b"\x20\x01\x0d\xb8"),
    )
    data = data_direction(pairing)
    assert frames_by_fate(pairing, data)["lost"] == lost_frames(LOSSY[0])["data"]
    [change] = data.changes
    assert (change.field, change.left_as) == ("source", "[fd00::a09:101]:5201")
    assert change.came_as == "[2001:db8::a09:101]:5201"


@pytest.mark.parametrize("skipped", some_by_day([400, 1_500, 3_003], first=1))
@pytest.mark.parametrize("stamped", [True, False])
@pytest.mark.parametrize("scenario", IN_ORDER)
def test_a_capture_that_begins_later(scenario: str, stamped: bool, skipped: int, tmp_path: Path) -> None:
    pairing = paired(scenario, tmp_path, stamped=stamped, skipped=skipped)
    truth, data = lost_frames(scenario)["data"], data_direction(pairing)
    fates = frames_by_fate(pairing, data)
    assert fates["lost"] <= truth
    assert not fates["delivered"] & truth
    assert data.leaves_at == "a"
    check_clock(pairing, scenario)


@pytest.mark.parametrize("share", [0.05, 0.3])
@pytest.mark.parametrize("side", ["a", "b"])
@pytest.mark.parametrize("stamped", [True, False])
@pytest.mark.parametrize("scenario", some_by_day(LOSSY, first=2))
def test_a_capture_with_gaps(scenario: str, stamped: bool, side: str, share: float, tmp_path: Path) -> None:
    """Copies of the same data, and ACKs with the same number, are distinguished by their possible times, or unknown."""
    sender, receiver = (read(capture) for capture in captures(scenario))
    if side == "a":
        sender = thinned(sender, share)
    else:
        receiver = thinned(receiver, share)
    pairing = tcpwin.pair(
        written(tmp_path / "a.pcap", sender, stamped=stamped), written(tmp_path / "b.pcap", receiver, stamped=stamped)
    )
    truth, data = lost_frames(scenario)["data"], data_direction(pairing)
    frames = {
        fate: {sender[frame - 1].frame for frame in found} for fate, found in frames_by_fate(pairing, data).items()
    }
    assert frames["delivered"].isdisjoint(truth)
    assert frames.get("late", set()).isdisjoint(truth)
    assert frames.get("lost", set()) <= truth
    if scenario in IN_ORDER and side == "b":
        assert len(truth - frames["lost"]) <= len(truth) // 10
    check_clock(pairing, scenario)
