"""Frames merged by offload at one point or both, divided differently: losses are reported per segment."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from pairing.packets import MSS, TIMESTAMPS, Packet, joined, read, segment, thinned, write
from pairing.pairs import ack_direction, captures, data_direction, frames_by_fate, lost_frames
from spread import some_by_day

import tcpwin
from tcpwin.pairing import Pairing

LOSSY = ("loss1_cubic_sack1", "loss1_reno_sack0", "loss1_reorder_cubic_sack1")
DATA_PORT = 5201
SYN, ACK, PSH = 0x02, 0x10, 0x08
US = 1_000


def early(packets: list[Packet]) -> list[Packet]:
    """Return each merged frame before its parts were sent: a frame is captured before the card segments it."""
    return [
        replace(packet, time_ns=packet.time_ns - 100 * US) if packet.payload_bytes > 1448 else packet
        for packet in packets
    ]


def frames_of(packets: list[Packet], lost: Iterable[Packet], size: int = 1448) -> set[int]:
    """Return the written frames that contain a lost segment."""
    found = set()
    for packet in lost:
        for number, frame in enumerate(packets, 1):
            count = -(-frame.payload_bytes // size)
            is_there = 0 <= packet.seq - frame.seq < frame.payload_bytes
            if is_there and frame.ports == packet.ports and 0 <= packet.ip_id - frame.ip_id < count:
                found.add(number)
    return found


def lost_packets(scenario: str, sent: list[Packet]) -> list[Packet]:
    frames = lost_frames(scenario)["data"]
    return [packet for packet in sent if packet.frame in frames]


def paired(folder: Path, a: list[Packet], b: list[Packet]) -> Pairing:
    return tcpwin.pair(write(folder / "a.pcap", a), write(folder / "b.pcap", b))


@pytest.mark.parametrize(
    ("at_sender", "at_receiver"), some_by_day([(44, 16), (16, 44), (44, 3), (7, 5), (3, 44)], of=2)
)
@pytest.mark.parametrize("scenario", some_by_day(LOSSY))
def test_frames_that_both_ends_cut_differently(scenario: str, at_sender: int, at_receiver: int, tmp_path: Path) -> None:
    sent, came = (read(capture) for capture in captures(scenario))
    lost = lost_packets(scenario, sent)
    a, b = early(joined(sent, DATA_PORT, at_sender)), joined(came, DATA_PORT, at_receiver)
    pairing = paired(tmp_path, a, b)
    data = data_direction(pairing)
    assert (data.unit, data.lost, data.unknown) == ("segment", len(lost), 0)
    assert frames_by_fate(pairing, data)["lost"] == frames_of(a, lost)
    assert data.sent == data_direction(tcpwin.pair(*captures(scenario))).sent
    assert data.missed_at_source == data.missed_at_target == data.duplicated == 0
    assert (ack_direction(pairing).lost, ack_direction(pairing).unknown) == (0, 0)


@pytest.mark.parametrize("side", ["a", "b"])
@pytest.mark.parametrize("scenario", some_by_day(LOSSY[:2], of=2))
def test_frames_that_both_ends_cut_differently_and_one_capture_lacks(scenario: str, side: str, tmp_path: Path) -> None:
    sent, came = (read(capture) for capture in captures(scenario))
    lost = lost_packets(scenario, sent)
    a, b = early(joined(sent, DATA_PORT, 44)), joined(came, DATA_PORT, 5)
    if side == "a":
        a = thinned(a, 0.3)
    else:
        b = thinned(b, 0.3)
    pairing = paired(tmp_path, a, b)
    data, truth = data_direction(pairing), frames_of(a, lost)
    fates = frames_by_fate(pairing, data)
    assert fates.get("lost", set()) <= truth
    assert truth <= fates.get("lost", set()) | fates.get("unknown", set())
    assert data.lost <= len(lost)


@pytest.mark.parametrize(("at_sender", "at_receiver"), [(1, 16), (4, 1), (4, 16), (4, 3)])
@pytest.mark.parametrize("missing", [0, 0.2])
def test_short_writes_that_are_joined(at_sender: int, at_receiver: int, missing: float, tmp_path: Path) -> None:
    """Segments of 300 bytes, as written by an application: four of them are shorter than a full segment."""
    sent, came, lost = writes_of(300)
    a, b = (joined(packets, 80, most, 300) for packets, most in ((sent, at_sender), (came, at_receiver)))
    pairing = paired(tmp_path, thinned(a, missing), b)
    data = data_direction(pairing)
    there = frames_of(thinned(a, missing), lost, 300)
    fates = frames_by_fate(pairing, data)
    # If the sender's capture lacks packets, a following ACK may answer a copy that it also lacks.
    assert fates["lost"] == there
    assert (data.lost, data.duplicated) == (len(lost), 0) if not missing else data.lost <= len(lost)
    if not missing:
        assert (data.unknown, data.missed_at_source) == (0, 0)


def writes_of(size: int) -> tuple[list[Packet], list[Packet], list[Packet]]:
    """Segments of one size from the server, some of which are lost and resent a round trip later."""
    chance = random.Random(4)
    sent, came, lost, again = [*handshake()], [*handshake(1)], [], []
    ip_id = 500
    for number in range(800):
        time_ms = 20 + number // 8 + number % 8 / 100
        due = [each for each in again if each[0] <= time_ms]
        again = again[len(due) :]
        for at_ms, seq in [*due, (time_ms, 1000 + size * number)]:
            is_copy = (at_ms, seq) in due
            what = {"client": False, "seq": seq, "ack": 501, "flags": ACK, "payload": size, "ip_id": ip_id}
            ip_id += 1
            packet = segment(max(at_ms, time_ms), **what)
            sent.append(packet)
            if not is_copy and number < 700 and chance.random() < 0.03:
                lost.append(packet)
                again.append((time_ms + 10, seq))
            else:
                came.append(segment(max(at_ms, time_ms) + 1, **what, ttl=63))
    for number in range(0, 800, 8):
        what = {"client": True, "seq": 501, "ack": 1000 + size * number, "flags": ACK, "ip_id": 9000 + number}
        came.append(segment(40 + number / 8, **what))
        sent.append(segment(41 + number / 8, **what, ttl=63))
    return sorted(sent, key=lambda each: each.time_ns), sorted(came, key=lambda each: each.time_ns), lost


def handshake(late_ms: int = 0) -> list[Packet]:
    """Return the handshake as seen by the server or the client."""
    rungs = (
        (2, {"client": True, "seq": 500, "ack": 0, "flags": SYN, "ip_id": 8000}),
        (3, {"client": False, "seq": 999, "ack": 501, "flags": SYN | ACK, "ip_id": 499}),
        (6, {"client": True, "seq": 501, "ack": 1000, "flags": ACK, "ip_id": 8001}),
    )
    out = []
    for time_ms, what in rungs:
        comes = bool(what["client"]) != bool(late_ms)
        out.append(segment(time_ms + (-late_ms if what["client"] else late_ms), **what, ttl=63 if comes else 64))
    return out


@pytest.mark.parametrize("mss", [1460, None])
def test_full_segments_without_timestamps_are_not_offload(mss: int | None, tmp_path: Path) -> None:
    """A middlebox removes the timestamps from the SYN: segments are longer than with them, and no frame is two.

    Both points are read in parallel: a copy is seen at the receiver before it is at the sender.
    """
    stamp = bytes([1, 1, TIMESTAMPS, 10, 0, 0, 0, 9, 0, 0, 0, 0])
    syn = bytes([MSS, 4]) + mss.to_bytes(2) + stamp if mss else b""
    a, b = [], []
    far = {True: 64, False: 63}
    for time_ms, what in (
        (0, {"client": True, "seq": 500, "ack": 0, "flags": SYN, "ip_id": 8000}),
        (1, {"client": False, "seq": 999, "ack": 501, "flags": SYN | ACK, "ip_id": 499}),
    ):
        is_client = bool(what["client"])
        a.append(segment(time_ms, **what, ttl=far[is_client], options=syn if is_client else syn[:4]))
        b.append(segment(time_ms, **what, ttl=far[not is_client], options=syn[:4]))
    lost, ip_id, time_ms = set(), 500, 2.0
    for number in range(200):
        what = {"client": False, "seq": 1000 + 1460 * number, "ack": 501, "flags": ACK, "payload": 1460}
        for copy in range(2 if number % 10 == 9 else 1):
            time_ms += 1
            packet = segment(time_ms, **what, ip_id=ip_id + copy)
            b.append(packet)
            if number % 10 == 9 and copy == 0:
                lost.add(len(b))
            else:
                a.append(segment(time_ms, **what, ip_id=ip_id + copy, ttl=63))
        ip_id += 2
        if number % 5 == 4:
            reply = {
                "client": True,
                "seq": 501,
                "ack": 1000 + 1460 * (number + 1),
                "flags": ACK,
                "ip_id": 9000 + number,
            }
            time_ms += 0.1
            a.append(segment(time_ms, **reply))
            b.append(segment(time_ms, **reply, ttl=63))
    if mss is None:
        a, b, lost = a[2:], b[2:], {frame - 2 for frame in lost}
    pairing = paired(tmp_path, a, b)
    data = data_direction(pairing)
    assert (data.unit, data.sent, data.lost + data.unknown) == ("frame", 221 if mss else 220, 20)
    fates = frames_by_fate(pairing, data)
    assert fates["lost"] | fates.get("unknown", set()) == lost
    # Without a SYN the captures may begin at different times.
    assert data.unknown <= (0 if mss else 2)


def test_copies_of_acks_without_ids_differ_by_their_contents(tmp_path: Path) -> None:
    """Duplicate ACKs of one number with growing SACK blocks; the network duplicates every third of them."""
    a, b = handshake(1), handshake()
    doubled = 0
    for number in range(60):
        acks = 1000 + number // 20 * 100_000
        sack = ((acks + 1448, acks + 1448 * (2 + number % 20)),)
        what = {"client": True, "seq": 501, "ack": acks, "flags": ACK, "ip_id": 0, "sack": sack}
        time_ms = 200 + number
        a.append(segment(time_ms, **what))
        b.append(segment(time_ms + 1, **what, ttl=63))
        if number % 3 == 1:
            doubled += 1
            b.append(segment(time_ms + 1.3, **what, ttl=63))
    pairing = paired(tmp_path, a, b)
    [acks_way] = [each for each in pairing.connections[0].directions if each.leaves_at == "a"]
    assert (acks_way.sent, acks_way.lost, acks_way.duplicated, acks_way.unknown) == (62, 0, doubled, 0)
    table = pairing.packets()
    mine = (table["direction"] == acks_way.index) & (table["frame_a"] > 3) & (table["frame_b"] > 0)
    delay_ns = table["time_b_ns"][mine] - table["time_a_ns"][mine]
    assert set(delay_ns.tolist()) == {1_000_000}


def test_merged_short_segments_do_not_lower_the_mss(tmp_path: Path) -> None:
    """The receiver's card merges 1,299 and 50 bytes, and three later full segments, which left long before."""
    mss = bytes([MSS, 4]) + (1460).to_bytes(2)
    a, b = [], []
    for time_ms, what in (
        (2, {"client": True, "seq": 500, "ack": 0, "flags": SYN, "ip_id": 8000}),
        (3, {"client": False, "seq": 999, "ack": 501, "flags": SYN | ACK, "ip_id": 499}),
    ):
        is_client = bool(what["client"])
        a.append(segment(time_ms + (0 if is_client else 1), **what, ttl=64 if is_client else 63, options=mss))
        b.append(segment(time_ms + (1 if is_client else 0), **what, ttl=63 if is_client else 64, options=mss))
    seq, ip_id = 1000, 500
    for flight in range(30):
        for count, size in enumerate((1460, 1299, 50, 1460, 1460, 1460)):
            what = {"client": False, "seq": seq, "ack": 501, "flags": ACK, "payload": size, "ip_id": ip_id}
            b.append(segment(20 + flight * 40, **what))
            joined_len = {1: 1349, 3: 4380}.get(count, size)
            if count not in (2, 4, 5):
                a.append(segment(40 + flight * 40 + count, **{**what, "payload": joined_len}, ttl=63))
            seq, ip_id = seq + size, ip_id + 1
    data = data_direction(paired(tmp_path, a, b))
    assert (data.lost, data.unknown, data.missed_at_source, data.duplicated) == (0, 0, 0, 0)
    assert (data.unit, data.sent) == ("segment", 181)
