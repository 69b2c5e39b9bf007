"""Middleboxes between the two points: address translation, rewriters, a proxy. Each is named; losses stay exact."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pairing.packets import CYCLE, IP_BYTES, MSS, SACK, SACK_PERMITTED, TIMESTAMPS, WINDOW_SCALE, Packet, each
from pairing.pairs import ack_direction, bent, data_direction, lost_frames

import tcpwin
from tcpwin.pairing import PairedDirection
from tcpwin.render import change_on_the_way

LOSSY = "loss1_cubic_sack1"
SERVER_PORT = 5201
CLIENT_PORT = 38102
SYN, ACK, ECE, CWR = 0x02, 0x10, 0x40, 0x80


def exact(pairing: tcpwin.Pairing) -> tuple[PairedDirection, PairedDirection]:
    """Return both directions, the data's first, after checking that losses are exact."""
    assert len(pairing) == 1
    assert not pairing.unpaired
    data, acks = data_direction(pairing), ack_direction(pairing)
    assert (data.lost, data.unknown) == (len(lost_frames(LOSSY)["data"]), 0)
    assert (acks.lost, acks.unknown) == (0, 0)
    return data, acks


def fields(direction: PairedDirection) -> set[str]:
    return {change.field for change in direction.changes}


def from_client(packet: Packet) -> bool:
    return packet.ports[0] == CLIENT_PORT


def translated(packet: Packet, *, source: bool, target: bool) -> Packet:
    """Return the server's side of a router that translates address and port of the client, the server, or both."""
    client, server = (12, 16) if from_client(packet) else (16, 12)
    client_port, server_port = (0, 2) if from_client(packet) else (2, 0)
    if source:
        packet = packet.with_ip(client, ">I", 0xC0000207).with_tcp(client_port, ">H", 61000)
    if target:
        packet = packet.with_ip(server, ">I", 0xC6336401).with_tcp(server_port, ">H", 443)
    return packet


@pytest.mark.parametrize(("source", "target"), [(True, False), (False, True), (True, True)])
def test_translated_addresses(source: bool, target: bool, tmp_path: Path) -> None:
    pairing = bent(
        LOSSY, tmp_path, b=lambda packets: each(packets, lambda p: translated(p, source=source, target=target))
    )
    data, _ = exact(pairing)
    assert data.is_translated
    assert str(data.source) == f"10.9.1.1:{SERVER_PORT}"
    assert str(data.target) == f"10.9.2.2:{CLIENT_PORT}"
    assert str(data.source_in_b) == ("198.51.100.1:443" if target else f"10.9.1.1:{SERVER_PORT}")
    assert str(data.target_in_b) == ("192.0.2.7:61000" if source else f"10.9.2.2:{CLIENT_PORT}")
    for direction in pairing.connections[0].directions:
        ends = ("source", "target")
        found = {change.field: change for change in direction.changes}
        expected = {}
        for field, end in zip(("source", "destination"), ends, strict=True):
            in_a, in_b = (str(getattr(direction, name)) for name in (end, f"{end}_in_b"))
            if in_a != in_b:
                expected[field] = (in_a, in_b) if direction.leaves_at == "a" else (in_b, in_a)
        assert {field: (change.left_as, change.came_as) for field, change in found.items()} == expected
        assert len(expected) == source + target
        for change in found.values():
            assert (change.packets, change.rule) == (None, None)
            assert change.frame_a == change.frame_b == (1 if direction.index == 0 else 2)
            assert f"{change.left_as} → {change.came_as} (NAT, every packet, first a:" in change_on_the_way(change)


def test_translation_that_also_rewrites_ip_ids(tmp_path: Path) -> None:
    ids = iter(range(1, 1 << 20))

    def bend(packet: Packet) -> Packet:
        return translated(packet, source=True, target=False).with_ip(4, ">H", next(ids) * 7 % 65536)

    data, acks = exact(bent(LOSSY, tmp_path, b=lambda packets: each(packets, bend)))
    assert fields(data) == {"ip_id", "destination"}
    assert fields(acks) == {"ip_id", "source"}


def on_syns(change: Callable[[Packet], Packet]) -> Callable[[list[Packet]], list[Packet]]:
    return lambda packets: each(packets, lambda packet: change(packet) if packet.flags & SYN else packet)


def option_rewritten(kind: int, form: str, value: int) -> Callable[[Packet], Packet]:
    def bend(packet: Packet) -> Packet:
        at = packet.option(kind)
        assert at is not None
        return packet.with_ip(at + 2, form, value)

    return bend


@pytest.mark.parametrize(
    ("bend", "field", "left_as", "came_as", "rule"),
    [
        (option_rewritten(WINDOW_SCALE, "B", 4), "window_scale", 7, 4, "TW103"),
        (lambda packet: packet.without_option(WINDOW_SCALE), "window_scale", 7, None, "TW102"),
        (option_rewritten(MSS, ">H", 1360), "mss", 1460, 1360, None),
        (lambda packet: packet.without_option(SACK_PERMITTED), "sack_permitted", 1, None, None),
    ],
    ids=["window scale", "no window scale", "mss", "no sack permitted"],
)
def test_an_option_of_the_clients_syn_that_is_rewritten(
    bend: Callable[[Packet], Packet], field: str, left_as: int, came_as: int | None, rule: str | None, tmp_path: Path
) -> None:
    data, acks = exact(bent(LOSSY, tmp_path, a=on_syns(lambda packet: bend(packet) if from_client(packet) else packet)))
    [change] = acks.changes
    assert (change.field, change.left_as, change.came_as, change.packets) == (field, left_as, came_as, 1)
    assert change.rule == rule or rule is None
    assert (change.frame_a, change.frame_b, acks.altered) == (1, 1, 1)
    assert not data.changes


def test_timestamps_that_are_taken_away(tmp_path: Path) -> None:
    def strip(packets: list[Packet]) -> list[Packet]:
        return each(packets, lambda packet: packet.without_option(TIMESTAMPS))

    data, acks = exact(bent(LOSSY, tmp_path, b=strip))
    assert fields(data) == fields(acks) == {"timestamps"}
    assert all(change.packets for change in data.changes)


def test_sack_blocks_that_a_firewall_does_not_rewrite(tmp_path: Path) -> None:
    """It adds to the server's sequence numbers but not to SACK blocks, which therefore differ at the client."""
    data, acks = exact(bent(LOSSY, tmp_path, b=lambda packets: each(packets, lambda p: renumbered(p, 0, 123_456_789))))
    assert {change.field: change.came_as for change in data.changes} == {"sequence": 123_456_789}
    assert fields(acks) == {"acknowledgment", "sack_blocks"}


def renumbered(packet: Packet, client: int, server: int) -> Packet:
    """Apply a firewall that adds to each end's sequence numbers on their way to the other capture."""
    own, back = (client, server) if from_client(packet) else (server, client)
    packet = packet.with_tcp(4, ">I", (packet.seq + own) % CYCLE)
    if packet.flags & ACK:
        ack = int.from_bytes(packet.data[IP_BYTES + 8 : IP_BYTES + 12])
        packet = packet.with_tcp(8, ">I", (ack + back) % CYCLE)
    return packet


def with_sack(packet: Packet, client: int, server: int) -> Packet:
    at = packet.option(SACK)
    if at is None:
        return packet
    back = server if from_client(packet) else client
    for edge in range(at + 2, at + packet.data[at + 1], 4):
        value = int.from_bytes(packet.data[edge : edge + 4])
        packet = packet.with_ip(edge, ">I", (value + back) % CYCLE)
    return packet


@pytest.mark.parametrize(("client", "server"), [(0, 3_000_000_000), (77, 0), (1 << 31, 5)])
def test_sequence_numbers_that_are_rewritten(client: int, server: int, tmp_path: Path) -> None:
    def bend(packets: list[Packet]) -> list[Packet]:
        return each(packets, lambda packet: with_sack(renumbered(packet, client, server), client, server))

    data, acks = exact(bent(LOSSY, tmp_path, b=bend))
    assert fields(data) == {name for name, shift in (("sequence", server), ("acknowledgment", client)) if shift}
    assert fields(acks) == {name for name, shift in (("sequence", client), ("acknowledgment", server)) if shift}


def test_sequence_numbers_and_addresses_that_are_rewritten(tmp_path: Path) -> None:
    # The ports identify the direction, so translate them last.
    def in_order(packet: Packet) -> Packet:
        return translated(with_sack(renumbered(packet, 9, 9), 9, 9), source=True, target=True)

    data, _ = exact(bent(LOSSY, tmp_path, b=lambda packets: each(packets, in_order)))
    assert data.is_translated
    assert "sequence" in fields(data)


def test_ecn_that_is_bleached(tmp_path: Path) -> None:
    """All data leaves with ECT(0), and arrives without."""

    def capable(packet: Packet) -> Packet:
        return packet.with_ip(1, "B", 0x02) if packet.payload_bytes else packet

    data, acks = exact(bent(LOSSY, tmp_path, a=lambda packets: each(packets, capable)))
    [change] = data.changes
    assert (change.field, change.left_as, change.came_as) == ("ecn", 2, 0)
    assert "ECN ECT(0) → Not-ECT" in change_on_the_way(change)
    assert change.packets == data.altered
    assert data.delivered - data.altered <= 3  # SYN/ACK, and the FIN without payload.
    assert not acks.changes


def test_congestion_marks_are_not_bleaching(tmp_path: Path) -> None:
    chance = random.Random(1)

    def marked(packet: Packet) -> Packet:
        return packet.with_ip(1, "B", 3 if chance.random() < 0.1 else 2) if packet.payload_bytes else packet

    def capable(packet: Packet) -> Packet:
        return packet.with_ip(1, "B", 2) if packet.payload_bytes else packet

    data, _ = exact(bent(LOSSY, tmp_path, a=lambda p: each(p, capable), b=lambda p: each(p, marked)))
    assert fields(data) == {"congestion_mark"}


@pytest.mark.parametrize("side", ["a", "b"])
@pytest.mark.parametrize("snapshot_bytes", [54, 60, 66, 70])
def test_options_cut_off_by_a_snapshot_length_were_not_removed(snapshot_bytes: int, side: str, tmp_path: Path) -> None:
    """Snapshot lengths that contain the headers without options, or with a part of them."""

    def cut(packets: list[Packet]) -> list[Packet]:
        return each(packets, lambda packet: replace(packet, data=packet.data[: snapshot_bytes - 14]))

    pairing = bent(LOSSY, tmp_path, **{side: cut})
    data, acks = data_direction(pairing), ack_direction(pairing)
    assert fields(data) == fields(acks) == set()
    assert (data.lost, acks.lost) == (len(lost_frames(LOSSY)["data"]), 0)
    assert data.unknown + acks.unknown <= 1


def test_dscp_that_is_rewritten(tmp_path: Path) -> None:
    expedited = 46

    def bend(packet: Packet) -> Packet:
        return packet.with_ip(1, "B", expedited << 2)

    data, _ = exact(bent(LOSSY, tmp_path, a=lambda packets: each(packets, bend)))
    [change] = data.changes
    assert (change.field, change.left_as, change.came_as) == ("dscp", expedited, 0)


def test_a_window_that_is_rewritten(tmp_path: Path) -> None:
    def bend(packet: Packet) -> Packet:
        return packet if packet.flags & SYN else packet.with_tcp(14, ">H", 100)

    _, acks = exact(bent(LOSSY, tmp_path, a=lambda packets: each(packets, lambda p: bend(p) if from_client(p) else p)))
    assert fields(acks) == {"window"}


def test_flags_of_ecn_that_are_cleared(tmp_path: Path) -> None:
    def asking(packet: Packet) -> Packet:
        return packet.with_tcp(13, "B", packet.flags | ECE | CWR)

    _, acks = exact(bent(LOSSY, tmp_path, b=on_syns(lambda p: asking(p) if from_client(p) else p)))
    [change] = acks.changes
    assert (change.field, change.packets) == ("flags", 1)
    assert "TCP flags SYN+ECE+CWR → SYN" in change_on_the_way(change)


def test_hops_are_the_routers_between(tmp_path: Path) -> None:
    """The lab has one router; two more decrement the TTL by one each."""

    def bend(packet: Packet) -> Packet:
        away = packet.ports[0] == SERVER_PORT
        return packet.with_ip(8, "B", packet.data[8] + (-2 if away else 2))

    data, acks = exact(bent(LOSSY, tmp_path, b=lambda packets: each(packets, bend)))
    assert data.hops == acks.hops == (3, 3)


def test_resets_from_something_in_between(tmp_path: Path) -> None:
    """One arrives at the client with a different TTL; the server never sent it."""

    def bend(packets: list[Packet]) -> list[Packet]:
        model = next(packet for packet in packets[1000:] if not from_client(packet))
        reset = model.with_tcp(13, "B", 0x04).with_ip(2, ">H", 40).with_tcp(12, "B", 0x50)
        reset = replace(reset.with_ip(8, "B", 250).with_ip(4, ">H", 1), data=reset.data[:40], wire_bytes=40)
        reset = reset.with_ip(8, "B", 250).with_ip(4, ">H", 1)
        at = packets.index(model) + 1
        return [*packets[:at], reset, *packets[at:]]

    data, _ = exact(bent(LOSSY, tmp_path, b=bend))
    assert data.injected == 1


@pytest.mark.parametrize("resent", [0, 0.2])
def test_a_proxy_is_two_connections(resent: float, tmp_path: Path) -> None:
    """Different sequence numbers, timestamps, IP ids, and copies on one side, but the same data."""
    chance = random.Random(3)
    ids = iter(range(1, 1 << 20))

    def bend(packets: list[Packet]) -> list[Packet]:
        out = []
        for packet in packets:
            other = renumbered(translated(packet, source=True, target=False), 1_000_003, 2_000_003)
            other = other.with_ip(4, ">H", next(ids) * 11 % 65536)
            at = other.option(TIMESTAMPS)
            if at is not None:
                other = other.with_ip(at + 2, ">I", (packet.time_ns // 1_000_000) % CYCLE)
                other = other.with_ip(at + 6, ">I", (packet.time_ns // 1_000_000 + 17) % CYCLE)
            out.append(other)
            if chance.random() < resent:
                out.append(other.with_ip(4, ">H", next(ids) * 11 % 65536))
        return out

    pairing = bent(LOSSY, tmp_path, b=bend)
    assert len(pairing) == 0
    [proxy] = pairing.proxies
    assert {proxy.in_a.source.port, proxy.in_b.source.port} == {CLIENT_PORT, 61000}
    # Copies are not counted.
    assert proxy.in_a.bytes == proxy.in_b.bytes
