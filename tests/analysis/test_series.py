"""Series and percentiles against an independent computation from the rows, sample by sample and in larger buckets."""

from pathlib import Path
from typing import Any

import pytest
from analysis import truth
from analysis.bundled import WHOLE, analyze, name_of, rows_of
from cases import all_cases

import tcpwin

SERIES = ("receive_window", "right_edge", "flight", "pipe", "sequence", "throughput")
SIDES = (("a", "a_to_b"), ("b", "b_to_a"))
NO_HANDSHAKE = {"mid-connection.pcap.gz"}
FINEST = 1 << 20
"""More buckets than any bundled connection has segments."""
FOLLOWED = [path for path in WHOLE if path.name not in NO_HANDSHAKE]
# A few of many-short's 65 similar connections suffice.
CONNECTIONS_LOOKED_AT = 8


def segments_of(path: Path) -> dict[int, list[dict[str, Any]]]:
    connections: dict[int, list[dict[str, Any]]] = {}
    for row in rows_of(path):
        connections.setdefault(row["connection"], []).append(row)
    return connections


def followed(path: Path) -> list[tuple[int, dict[str, truth.Side]]]:
    """Return the connections that have everything the independent computation needs, and its results."""
    found = [(id, truth.follow(rows)) for id, rows in segments_of(path).items() if truth.has_handshake(rows)]
    assert found, "no connection of this capture is looked at"
    return found[:CONNECTIONS_LOOKED_AT]


def samples_of(side: truth.Side) -> dict[str, truth.Samples]:
    return {
        "receive_window": side.windows,
        "right_edge": side.edges,
        "flight": side.flight,
        "sequence": side.sequence,
        "throughput": side.payload,
    }


def as_buckets(series: tcpwin.Series) -> list[tuple[int, ...]]:
    columns = (series.time_ns, series.min, series.max, series.last, series.sum)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def needs_order(name: str, side: truth.Side) -> bool:
    """Return true if overtaken segments, recognised by timestamps that rows lack, may change the result."""
    return name in ("receive_window", "right_edge") and not side.is_window_in_order


@all_cases("count", [FINEST, 1024, 16])
@all_cases("path", FOLLOWED, ids=name_of, of=6, first=1)
def test_series_are_what_the_rows_say(path: Path, count: int) -> None:
    cases = followed(path)
    analysis = tcpwin.analyze(path, follow=[id for id, _ in cases], buckets=count)
    for id, sides in cases:
        connection = analysis.connections[id]
        for sender, direction in SIDES:
            for name, samples in samples_of(sides[sender]).items():
                if needs_order(name, sides[sender]):
                    continue
                series = connection.series(name, direction=direction)
                expected = truth.buckets(samples, connection.start_ns, series.width_ns)
                assert as_buckets(series) == expected, (id, direction, name)


@all_cases("count", [1024, 16])
@all_cases("path", WHOLE, ids=name_of, of=6, first=5)
def test_buckets_are_bounded_and_no_wider_than_needed(path: Path, count: int) -> None:
    analysis = tcpwin.analyze(path, follow=[0], buckets=count)
    fine = tcpwin.analyze(path, follow=[0], buckets=FINEST)
    connection = analysis.connections[0]
    for _, direction in SIDES:
        for name in SERIES:
            series = connection.series(name, direction=direction)
            assert len(series) <= count
            assert all(earlier < later for earlier, later in zip(series.time_ns, series.time_ns[1:], strict=False))
            assert series.width_ns.bit_count() == 1
            if series.width_ns > 1:
                times = fine.connections[0].series(name, direction=direction).time_ns.tolist()
                halved = {(time_ns - connection.start_ns) // (series.width_ns // 2) for time_ns in times}
                assert len(halved) > count // 2, (direction, name)


@all_cases("path", FOLLOWED, ids=name_of, of=6, first=3)
def test_right_edge_is_sequence_and_room(path: Path) -> None:
    """RFC 9293 §3.3.1: the right edge is SND.UNA + SND.WND; data in flight is between SND.UNA and SND.NXT."""
    compared = 0
    for id, sides in followed(path):
        analysis = tcpwin.analyze(path, follow=[id], buckets=FINEST)
        for sender, direction in SIDES:
            if not sides[sender].is_window_in_order:
                continue
            by_name = {
                name: dict(zip(series.time_ns.tolist(), series.last.tolist(), strict=True))
                for name in SERIES
                if (series := analysis.connections[id].series(name, direction=direction))
            }
            for time_ns, edge in by_name.get("right_edge", {}).items():
                room = edge - by_name["sequence"][time_ns]
                spare = by_name["receive_window"][time_ns] - by_name["flight"][time_ns] - room
                # An unacknowledged SYN or FIN takes a sequence number but no byte.
                assert 0 <= spare <= 2, (id, direction, time_ns)
                compared += 1
    assert compared


@all_cases("path", FOLLOWED, ids=name_of, of=6, first=4)
def test_extremes_agree_with_the_fields(path: Path) -> None:
    for id, sides in followed(path):
        connection = analyze(path).connections[id]
        for sender, direction in SIDES:
            side, measured = sides[sender], getattr(connection, direction)
            assert measured.flight_max_bytes == max(value for _, value in side.flight)
            assert measured.payload_bytes == sum(value for _, value in side.payload)
            throughput = connection.series("throughput", direction=direction)
            assert sum(throughput.sum.tolist()) == measured.payload_bytes
            if side.is_window_in_order:
                assert measured.receive_window_max_bytes == max(value for _, value in side.windows)
                assert measured.receive_window_min_bytes == min(value for _, value in side.windows)
                assert measured.receive_window_last_bytes == side.window


@all_cases("path", WHOLE, ids=name_of, of=6)
def test_pipe_is_what_rows_say_at_the_sender(path: Path) -> None:
    """The row of a data segment has pipe and flight of its sender just after it: the series' sample at that time."""
    rows = [row for row in rows_of(path) if row["connection"] == 0 and "capture_duplicate" not in row["events"]]
    connection = tcpwin.analyze(path, follow=[0], buckets=FINEST).connections[0]
    for sender, direction in SIDES:
        for name, column in (("pipe", "pipe"), ("flight", "bytes_in_flight")):
            series = connection.series(name, direction=direction)
            least = dict(zip(series.time_ns.tolist(), series.min.tolist(), strict=True))
            most = dict(zip(series.time_ns.tolist(), series.max.tolist(), strict=True))
            known = [row for row in rows if row["direction"] == sender and row[column] is not None]
            assert known or not rows
            for row in known:
                assert least[row["time_ns"]] <= row[column] <= most[row["time_ns"]], row["frame"]


@all_cases("path", FOLLOWED, ids=name_of, of=6, first=2)
def test_percentiles_are_weighted_by_time(path: Path) -> None:
    compared = 0
    for id, sides in followed(path):
        connection = analyze(path).connections[id]
        for sender, direction in SIDES:
            side = sides[sender]
            for name, samples in (("receive_window", side.windows), ("flight", side.flight)):
                # From the first acknowledgment on, like the means.
                from_ns = side.first_ack_ns if name == "flight" else None
                steps = truth.weights(samples, connection.end_ns, from_ns=from_ns)
                if needs_order(name, side) or not steps:
                    continue
                measured = connection.percentiles(name, direction=direction)
                for percent in (5, 25, 50, 75, 95, 99):
                    expected = truth.percentile(steps, percent)
                    value = getattr(measured, f"p{percent}")
                    assert 0 <= expected - value <= measured.step_bytes, (id, direction, name, percent)
                    compared += 1
                if len({value for value, _ in steps}) <= 1000:
                    assert measured.step_bytes == 0
    assert compared


@all_cases("path", FOLLOWED, ids=name_of, of=3)
def test_means_are_weighted_by_time(path: Path) -> None:
    compared = 0
    for id, sides in followed(path):
        connection = analyze(path).connections[id]
        for sender, direction in SIDES:
            side, measured = sides[sender], getattr(connection, direction)
            # Start at the first acknowledgment: SND.UNA is unknown before it.
            flight = truth.weights(side.flight, connection.end_ns, from_ns=side.first_ack_ns)
            if flight:
                assert measured.flight_mean_bytes == pytest.approx(truth.mean(flight), rel=1e-9, abs=1e-6)
            if side.is_window_in_order:
                first = (side.window_since_ns, _initial_window(path, id, sender))
                windows = truth.weights([first, *side.windows], connection.end_ns)
                assert measured.receive_window_mean_bytes == pytest.approx(truth.mean(windows), rel=1e-9)
                compared += 1
    assert compared


def _initial_window(path: Path, id: int, sender: str) -> int:
    """Return the unscaled window of this data's receiver's SYN (RFC 7323 §2.2)."""
    syns = [row for row in segments_of(path)[id] if row["direction"] != sender and row["flags"] & truth.SYN]
    window: int = syns[0]["window_raw"]
    return window


def test_capture_without_handshake_has_flight_but_no_window_in_bytes() -> None:
    [path] = [path for path in WHOLE if path.name in NO_HANDSHAKE]
    connection = analyze(path).connections[0]
    assert len(connection.series("receive_window", direction="b_to_a")) == 0
    assert len(connection.series("right_edge", direction="b_to_a")) == 0
    assert connection.percentiles("receive_window", direction="b_to_a").p50 is None
    assert connection.b_to_a.receive_window_mean_bytes is None
    assert len(connection.series("flight", direction="b_to_a")) > 0


def test_unknown_names_are_refused() -> None:
    connection = analyze(WHOLE[0]).connections[0]
    with pytest.raises(KeyError, match="unknown series windows"):
        connection.series("windows")
    with pytest.raises(KeyError, match="no percentiles of sequence"):
        connection.percentiles("sequence")
    with pytest.raises(ValueError, match="direction is a_to_b or b_to_a, not up"):
        connection.series("flight", direction="up")
