"""One capture that contains those of both ends is split automatically, and paired like the two."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import all_cases
from pairing.packets import Packet, each, read, skewed, write
from pairing.pairs import ack_direction, captures, data_direction, frames_by_fate, lost_frames
from reference import LAB_RUNS

import tcpwin
from tcpwin.errors import SourceError

LOSSY = "loss1_cubic_sack1"
RUNS = (LOSSY, "loss1_reno_sack0", "loss1_reorder_cubic_sack1", "slow_reader", "iperf3_300ms_20mbit_512m2")
SERVER_PORT = 5201


def merged(folder: Path, *ends: list[Packet]) -> tuple[Path, list[tuple[int, int]]]:
    """Return both captures in order of time, and each frame's end, 0 or 1, with its frame there."""
    all_of = [(packet.time_ns, end, packet) for end, packets in enumerate(ends) for packet in packets]
    all_of.sort(key=lambda one: one[:2])
    path = write(folder / "merged.pcap", [packet for _, _, packet in all_of])
    return path, [(end, packet.frame) for _, end, packet in all_of]


@pytest.mark.parametrize("scenario", RUNS)
def test_lost_packets_match_both_captures(scenario: str, tmp_path: Path) -> None:
    """A router in between decrements the TTL by one."""
    path, origins = merged(tmp_path, *map(read, captures(scenario)))
    one, two = tcpwin.pair(path), tcpwin.pair(*captures(scenario))
    assert len(one) == len(two)
    for direction, other in ((data_direction(one), data_direction(two)), (ack_direction(one), ack_direction(two))):
        assert (direction.sent, direction.lost, direction.unknown) == (other.sent, other.lost, other.unknown)
        assert (direction.delay, direction.resent) == (other.delay, other.resent)
    lost = frames_by_fate(one, data_direction(one)).get("lost", set())
    # Frames refer to the given capture.
    assert {origins[frame - 1] for frame in lost} == {(0, frame) for frame in lost_frames(scenario)["data"]}
    assert not one.warnings


def test_the_verdict_is_that_of_both(tmp_path: Path) -> None:
    path, _ = merged(tmp_path, *map(read, captures(LOSSY)))
    verdicts = []
    for pairing in (tcpwin.pair(path), tcpwin.pair(*captures(LOSSY))):
        judged = pairing.judge(0)
        verdicts.append(judged.verdict)
    assert verdicts[0].limit == verdicts[1].limit == "path_loss"
    assert verdicts[0].share == pytest.approx(verdicts[1].share)


@pytest.mark.parametrize(
    "ahead_ns", [-40_000_000, 300_000_000, 1_000_000_000, -2_000_000_000, 6_000_000_000, 3_600_000_000_000]
)
def test_clocks_that_differ(ahead_ns: int, tmp_path: Path) -> None:
    a, b = map(read, captures(LOSSY))
    path, _ = merged(tmp_path, a, skewed(b, 0, ahead_ns))
    pairing = tcpwin.pair(path)
    assert data_direction(pairing).lost == len(lost_frames(LOSSY)["data"])
    assert abs(abs(pairing.clock.offset_ns) - abs(ahead_ns)) <= 10_000


def test_without_a_router_in_between_the_first_copy_left(tmp_path: Path) -> None:
    """A bridge does not decrement the TTL. A lost packet appears once."""

    def bend(packets: list[Packet]) -> list[Packet]:
        return each(packets, lambda packet: packet.with_ip(8, "B", 64))

    path, _ = merged(tmp_path, *(bend(read(capture)) for capture in captures(LOSSY)))
    pairing = tcpwin.pair(path)
    data, acks = data_direction(pairing), ack_direction(pairing)
    assert (data.lost, acks.lost) == (len(lost_frames(LOSSY)["data"]), 0)
    assert pairing.connections[0].unknown == 0


def test_address_translation_in_between(tmp_path: Path) -> None:
    a, b = map(read, captures(LOSSY))

    def translated(packet: Packet) -> Packet:
        at, port = (12, 0) if packet.ports[0] != SERVER_PORT else (16, 2)
        return packet.with_ip(at, ">I", 0xC0000207).with_tcp(port, ">H", 61000)

    path, _ = merged(tmp_path, each(a, translated), b)
    pairing = tcpwin.pair(path)
    assert len(pairing) == 1
    assert data_direction(pairing).is_translated
    assert data_direction(pairing).lost == len(lost_frames(LOSSY)["data"])


def test_an_open_file(tmp_path: Path) -> None:
    path, _ = merged(tmp_path, *map(read, captures(LOSSY)))
    with path.open("rb") as file:
        assert data_direction(tcpwin.pair(file)).lost == len(lost_frames(LOSSY)["data"])


@all_cases("name", sorted(folder.name for folder in LAB_RUNS.iterdir() if folder.is_dir())[::4])
def test_a_capture_of_one_point_is_refused(name: str) -> None:
    with pytest.raises(SourceError, match="one point"):
        tcpwin.pair(captures(name)[0])


def test_analyze_names_the_command(tmp_path: Path) -> None:
    from tcpwin.render import render

    path, _ = merged(tmp_path, *map(read, captures(LOSSY)))
    assert f"`tcpwin pair {path}`" in render(tcpwin.analyze(path))
    assert "tcpwin pair " + str(path) not in render(tcpwin.analyze(captures(LOSSY)[0]))
