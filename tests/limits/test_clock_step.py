"""A capture clock that is set: the step limits nobody, and is in no round trip, rate or gap."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from spread import some_by_day
from stories import incomplete

import tcpwin

CAPTURES = Path(__file__).resolve().parents[2] / "captures" / "lab"
STEP_S = 30
STEPPED = ("window-scaling.pcap.gz", "loss-1-percent.pcap.gz", "receive-buffer-64k.pcap.gz")
"""Longer than any of the captures."""


def stepped(
    folder: Path, name: str, *, way: str | None = None, silence_s: int = 0, step_s: int = STEP_S
) -> tcpwin.Analysis:
    """Return a capture whose clock jumps by `step_s` halfway, and TCP's timestamp clock by `silence_s`."""
    capture = incomplete.read(CAPTURES / name)
    records = list(capture.records) if way is None else incomplete.WAYS[way](capture)
    half = next(number for number in range(len(records) // 2, len(records)) if records[number].port == capture.sender)
    data = capture.header
    for number, record in enumerate(records):
        seconds = struct.unpack_from("<I", record.head)[0] + (step_s if number >= half else 0)
        packet = bytearray(record.packet)
        if silence_s and number >= half and record.tcp is not None:
            # Linux ticks once per millisecond; two bytes of padding precede the option (RFC 7323, appendix A).
            at = record.tcp + 24
            tsval = struct.unpack_from(">I", packet, at)[0]
            struct.pack_into(">I", packet, at, (tsval + 1000 * silence_s) % (1 << 32))
        data += struct.pack("<I", seconds) + record.head[4:] + bytes(packet)
    path = folder / "stepped.pcap"
    path.write_bytes(data)
    return tcpwin.analyze(path)


@pytest.mark.parametrize("name", some_by_day(STEPPED, first=1))
@pytest.mark.parametrize("way", [None, "without SYNs"])
def test_a_step_is_nobodys_time(tmp_path: Path, name: str, way: str | None) -> None:
    analysis = stepped(tmp_path, name, way=way)
    connection = analysis.connections[0]
    assert STEP_S - 1 < connection.b_to_a.clock_step_ns / 1e9 < STEP_S + 1
    budget = connection.budget["b_to_a"]
    assert budget.items_ns["unknown"] >= (STEP_S - 1) * 10**9
    if way is None:
        whole = tcpwin.analyze(CAPTURES / name).connections[0].budget["b_to_a"]
        more = {item: ns - whole.items_ns[item] for item, ns in budget.items_ns.items()}
        assert abs(more["unknown"] / 1e9 - STEP_S) < 1
        assert max(ns for item, ns in more.items() if item != "unknown") < 1e9
    if name == "window-scaling.pcap.gz":
        assert connection.verdict.limit == "capture"
        assert "clock" in connection.verdict.reason


@pytest.mark.parametrize("name", ["loss-1-percent.pcap.gz", "receive-buffer-64k.pcap.gz"])
def test_a_silence_that_timestamps_confirm_is_not_a_step(tmp_path: Path, name: str) -> None:
    connection = stepped(tmp_path, name, silence_s=STEP_S).connections[0]
    assert connection.b_to_a.clock_step_ns == connection.a_to_b.clock_step_ns == 0


def test_pauses_are_not_steps() -> None:
    connection = tcpwin.analyze(CAPTURES / "idle-restart.pcap.gz").connections[0]
    assert connection.b_to_a.clock_step_ns == connection.a_to_b.clock_step_ns == 0


@pytest.mark.parametrize("name", some_by_day(STEPPED, first=2))
@pytest.mark.parametrize("way", [None, "without SYNs"])
def test_no_round_trip_gap_or_stall_contains_a_step(tmp_path: Path, name: str, way: str | None) -> None:
    """They equal those of the capture without the step, except for data in flight during it."""
    connection = stepped(tmp_path, name, way=way).connections[0]
    whole = tcpwin.analyze(CAPTURES / name).connections[0]
    for direction in ("a_to_b", "b_to_a"):
        data, before = getattr(connection, direction), getattr(whole, direction)
        longest = [each.round_trips(direction=direction).p99_ns or 0 for each in (connection, whole)]
        assert longest[0] <= 1.1 * longest[1] + 10**6
        rtts = [row["rtt_ns"] or 0 for row in connection.segments().rows()]
        assert max(rtts) < STEP_S * 10**9
        assert (data.rtt_smoothed_ns or 0) < STEP_S * 10**9
        assert data.idle_ns <= before.idle_ns
    assert connection.stall_longest_ns <= whole.stall_longest_ns
    assert connection.pause_ns <= whole.pause_ns
    assert all(stall.duration_ns < 10**9 for stall in connection.stalls)
    assert all((event.age_ns or 0) < STEP_S * 10**9 for event in connection.events)


@pytest.mark.parametrize("name", some_by_day(STEPPED, first=0))
@pytest.mark.parametrize("way", [None, "without SYNs"])
def test_a_step_back_is_in_no_field(tmp_path: Path, name: str, way: str | None) -> None:
    """Times continue from the latest one before the step: only one interval between two segments is lost."""
    connection = stepped(tmp_path, name, way=way, step_s=-STEP_S).connections[0]
    whole = tcpwin.analyze(CAPTURES / name).connections[0]
    data, before = connection.b_to_a, whole.b_to_a
    assert STEP_S - 1 < data.clock_step_ns / 1e9 < STEP_S + 1
    assert whole.duration_ns - 10**9 < connection.duration_ns <= whole.duration_ns
    assert data.goodput_bps == pytest.approx(before.goodput_bps, rel=0.1)
    assert data.idle_ns <= before.idle_ns
    longest = [each.round_trips(direction="b_to_a").p99_ns or 0 for each in (connection, whole)]
    assert longest[0] <= 1.1 * longest[1] + 10**6
    least = [each.path_rtt_ns or 0 for each in (connection, whole)]
    assert least[0] >= least[1] * 0.9 - 10**6
    assert all((event.age_ns or 0) < STEP_S * 10**9 for event in connection.events)


@pytest.mark.parametrize("name", ["window-scaling.pcap.gz", "receive-buffer-64k.pcap.gz"])
def test_a_step_forward_is_in_no_rate(tmp_path: Path, name: str) -> None:
    data = stepped(tmp_path, name).connections[0].b_to_a
    whole = tcpwin.analyze(CAPTURES / name).connections[0].b_to_a
    assert data.goodput_bps == pytest.approx(whole.goodput_bps, rel=0.1)
