"""Lab runs captured at both ends: the network's drops, packet by packet, and the lab's single clock."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import pytest
from pairing.pairs import captures, data_direction, frames_by_fate, lost_frames
from reference import LAB_RUNS, ROOT

import tcpwin


def two_captures(path: Path) -> bool:
    with zipfile.ZipFile(path) as members:
        return sum(".pcap" in name for name in members.namelist()) == 2


RUNS = sorted(folder.name for folder in LAB_RUNS.iterdir() if folder.is_dir())
# netem varies the data's delay: the fastest packet there is faster than the fastest back by at least half the jitter.
JITTER_NS = {"loss1_reorder_cubic_sack1": 3_000_000, "reorder_only_cubic": 1_000_000}
MICROSECOND_NS = 1_000


@pytest.fixture(scope="module")
def pairings() -> dict[str, tcpwin.Pairing]:
    return {name: tcpwin.pair(*captures(name)) for name in RUNS}


@pytest.mark.parametrize("name", RUNS)
def test_every_connection_is_in_both_captures(name: str, pairings: dict[str, tcpwin.Pairing]) -> None:
    pairing = pairings[name]
    counts = [len(tcpwin.analyze(capture).connections) for capture in captures(name)]
    assert [len(pairing)] * 2 == counts
    assert not pairing.unpaired


@pytest.mark.parametrize("name", RUNS)
def test_packets_lost_are_those_that_the_network_dropped(name: str, pairings: dict[str, tcpwin.Pairing]) -> None:
    dropped = json.loads((LAB_RUNS / name / "meta.json").read_text(encoding="utf8"))["tc_dropped"]
    pairing = pairings[name]
    lost = sum(connection.lost for connection in pairing.connections)
    assert lost == sum(count for counts in dropped.values() for count in counts)
    assert sum(connection.unknown for connection in pairing.connections) == 0
    assert pairing.missed == (0, 0)


@pytest.mark.parametrize("name", ["loss1_cubic_sack1", "loss1_reno_sack0", "loss1_reorder_cubic_sack1"])
def test_each_lost_packet_is_the_one_that_was_dropped(name: str, pairings: dict[str, tcpwin.Pairing]) -> None:
    pairing = pairings[name]
    data = data_direction(pairing)
    assert data.leaves_at == "a"
    assert frames_by_fate(pairing, data)["lost"] == lost_frames(name)["data"]


@pytest.mark.parametrize("name", RUNS)
def test_every_packet_is_delivered_lost_or_unknown(name: str, pairings: dict[str, tcpwin.Pairing]) -> None:
    for connection in pairings[name].connections:
        for direction in connection.directions:
            assert direction.sent == direction.delivered + direction.lost + direction.unknown
            assert direction.late <= direction.delivered
            assert not direction.changes
            assert direction.duplicated == direction.captured_twice == direction.injected == 0
            assert direction.unit == "frame"


@pytest.mark.parametrize("name", RUNS)
def test_the_clocks_are_the_one_clock_of_the_lab(name: str, pairings: dict[str, tcpwin.Pairing]) -> None:
    clock = pairings[name].clock
    assert abs(clock.offset_ns) <= JITTER_NS.get(name, 10 * MICROSECOND_NS)
    assert abs(clock.offset_ns) <= clock.uncertainty_ns
    assert abs(clock.drift_ppm) <= (2 if name in JITTER_NS else 0.05)
    assert clock.steps_ns == ()


@pytest.mark.parametrize("name", sorted(set(RUNS) - set(JITTER_NS)))
def test_delays_are_half_of_the_round_trip_each(name: str, pairings: dict[str, tcpwin.Pairing]) -> None:
    rtt_ns = json.loads((LAB_RUNS / name / "meta.json").read_text(encoding="utf8"))["scenario"]["rtt_ms"] * 1e6
    for connection in pairings[name].connections:
        for direction in connection.directions:
            assert abs(direction.delay.least_ns - rtt_ns / 2) <= 10 * MICROSECOND_NS


def test_a_relay_on_a_real_kernel_that_dropped_twelve_packets() -> None:
    """captures/wild/lossy-path.toml: two namespaces of one host, and a relay of 15 ms each way."""
    wild = ROOT / "captures" / "wild"
    pairing = tcpwin.pair(wild / "lossy-path.pcapng.gz", wild / "lossy-path-receiver.pcap.gz")
    [connection] = pairing.connections
    data, acks = connection.directions
    assert (data.lost, data.retransmissions, data.unknown) == (12, 12, 0)
    assert (acks.lost, acks.unknown) == (0, 0)
    assert abs(pairing.clock.offset_ns) <= 500 * MICROSECOND_NS
    assert pairing.clock.drift_ppm == 0
    for direction in connection.directions:
        assert 14_500_000 <= direction.delay.least_ns <= 15_500_000


def test_late_are_those_that_others_overtook(pairings: dict[str, tcpwin.Pairing]) -> None:
    """A packet is late if one that left after it precedes it in the far capture."""
    pairing = pairings["reorder_only_cubic"]
    data = data_direction(pairing)
    table = pairing.packets()
    mine = (table["connection"] == data.connection) & (table["direction"] == data.index) & (table["frame_b"] > 0)
    arrivals = sorted(zip(table["frame_b"][mine].tolist(), table["frame_a"][mine].tolist(), strict=True))
    latest, late = 0, set()
    for _, left in arrivals:
        if left < latest:
            late.add(left)
        latest = max(latest, left)
    assert late
    assert frames_by_fate(pairing, data)["late"] == late
    assert data.late == len(late)


BUNDLES = sorted(path for path in (ROOT / "captures").glob("*/*.zip") if two_captures(path))


@pytest.mark.parametrize("path", BUNDLES, ids=lambda path: path.stem)
def test_bundles_lost_what_their_queues_dropped(path: Path) -> None:
    with zipfile.ZipFile(path) as members:
        counters = members.read(next(name for name in members.namelist() if name.endswith("tc.txt"))).decode()
    dropped = [int(count) for count in re.findall(r"dropped (\d+)", counters)]
    assert dropped
    pairing = tcpwin.pair(path)
    assert len(pairing) >= 1
    assert sum(connection.lost for connection in pairing.connections) == sum(dropped)
    assert sum(connection.unknown for connection in pairing.connections) == 0
    assert abs(pairing.clock.offset_ns) <= 10 * MICROSECOND_NS


def test_memory_is_bounded_by_packets_in_flight_and_lost() -> None:
    """8,552 packets; a flight has 80, and missing packets are given up after 20 s."""
    pairing = tcpwin.pair(*captures("loss1_cubic_sack1"))
    data = data_direction(pairing)
    assert data.sent > 5_000
    assert pairing._found["most_waiting"] <= 80 + 80 + data.lost
