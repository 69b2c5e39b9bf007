"""Views of spans against the whole connection, sample by sample; rows and their positions against the header fields."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path
from typing import Any

import ladder
import numpy as np
import pytest
from analysis import truth
from analysis.bundled import WHOLE, analyze, name_of, rows_of
from cases import all_cases

import tcpwin
from tcpwin import _engine

FINEST = 1 << 20
"""More buckets than any bundled connection has segments."""
DIRECTIONS = ("a_to_b", "b_to_a")
OF_AN_INSTANT = {"throughput", "rtt", "goodput", "resent"}
BY_NAME = {path.name: path for path in WHOLE}
SCENARIOS = Path(__file__).parents[1] / "scenarios"


def as_buckets(series: tcpwin.Series) -> list[tuple[int, ...]]:
    columns = (series.time_ns, series.min, series.max, series.last, series.sum)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def spans_of(connection: tcpwin.Connection) -> list[tuple[int, int]]:
    """Return the middle, the last third, the instant of a segment, one between two, and times before and after the
    connection.
    """
    start_ns, end_ns = connection.start_ns, connection.end_ns
    third_ns = max((end_ns - start_ns) // 3, 1)
    at_ns = int(connection.series("sequence", direction="a_to_b").time_ns[-1])
    return [
        (start_ns + third_ns, start_ns + 2 * third_ns),
        (end_ns - third_ns, end_ns + 5),
        (at_ns, at_ns),
        (at_ns - 1, at_ns - 1),
        (start_ns - 100, start_ns - 1),
        (end_ns + 1, end_ns + 100),
    ]


def cut(buckets: list[tuple[int, ...]], start_ns: int, end_ns: int, carried: bool) -> list[tuple[int, ...]]:
    """Return the samples of a span; for values that hold until the next, with the one in force at its start."""
    inside = [bucket for bucket in buckets if start_ns <= bucket[0] <= end_ns]
    before = [bucket for bucket in buckets if bucket[0] < start_ns]
    if carried and before and (not inside or inside[0][0] > start_ns):
        inside.insert(0, (start_ns, *[before[-1][3]] * 4))
    return inside


@all_cases("path", WHOLE, ids=name_of, of=12)
def test_series_of_a_span_are_cut_out_of_the_whole(path: Path) -> None:
    analysis = tcpwin.analyze(path, follow=[0], buckets=FINEST)
    connection = analysis.connections[0]
    whole = {
        (name, direction): connection.series(name, direction=direction)
        for name in _engine.SERIES_NAMES
        for direction in DIRECTIONS
    }
    is_in_order = all((series.time_ns[1:] > series.time_ns[:-1]).all() for series in whole.values())
    assert is_in_order
    assert analysis.capture.files[0].time_backwards == 0 or "any" in path.name
    buckets = {key: as_buckets(series) for key, series in whole.items()}
    for start_ns, end_ns in spans_of(connection):
        view = connection.view(start_ns, end_ns)
        finest = connection.view(start_ns, end_ns, buckets=FINEST)
        assert (view.start_ns, view.end_ns) == (start_ns, end_ns)
        for (name, direction), series in whole.items():
            fine = finest if len(series) > 1024 else view
            carried = name not in OF_AN_INSTANT and start_ns <= connection.end_ns
            expected = cut(buckets[name, direction], start_ns, end_ns, carried)
            assert as_buckets(fine.series(name, direction=direction)) == expected, (name, direction, start_ns)


@all_cases("path", WHOLE, ids=name_of, of=6, first=1)
def test_events_and_stalls_of_a_span(path: Path) -> None:
    connection = tcpwin.analyze(path, follow=[0]).connections[0]
    for start_ns, end_ns in spans_of(connection):
        view = connection.view(start_ns, end_ns)
        assert view.events == [each for each in connection.events if start_ns <= each.time_ns <= end_ns]
        touching = [each for each in connection.stalls if each.start_ns <= end_ns and each.end_ns >= start_ns]
        assert view.stalls == touching


@all_cases("path", WHOLE, ids=name_of, of=6, first=2)
def test_rows_are_the_segments_of_the_span(path: Path) -> None:
    rows = [row for row in rows_of(path) if row["connection"] == 0]
    connection = analyze(path).connections[0]
    for start_ns, end_ns in spans_of(connection):
        expected = [row for row in rows if start_ns <= row["time_ns"] <= end_ns]
        table = connection.view(start_ns, end_ns, rows=len(expected)).rows
        told = list(table.rows())
        assert [{name: row[name] for name in _engine.ROW_COLUMNS} for row in told] == expected
        if expected:
            assert connection.view(start_ns, end_ns, rows=len(expected) - 1).rows is None


@all_cases("path", [path for path in WHOLE if "mid-connection" not in path.name], ids=name_of, of=6)
def test_places_are_counted_from_the_syn(path: Path) -> None:
    rows = [row for row in rows_of(path) if row["connection"] == 0]
    isn = {row["direction"]: row["seq"] for row in rows if row["flags"] & truth.SYN}
    table = analyze(path).connections[0].view(rows=len(rows)).rows
    assert table is not None
    compared = 0
    for row in table.rows():
        own, other = isn[row["direction"]], isn.get(truth.OTHER[row["direction"]])
        if row["frame"] == 1:
            assert row["acknowledged"] is None
        assert (row["sequence"] - row["seq"] + own) % (1 << 32) == 0
        assert -(1 << 31) < row["sequence"] < 1 << 32
        if row["flags"] & truth.ACK and other is not None and not row["flags"] & truth.RST:
            assert row["acknowledged"] == (row["ack"] - other) % (1 << 32)
            compared += 1
        edge = None if None in (row["acknowledged"], row["window"]) else row["acknowledged"] + row["window"]
        assert row["right_edge"] == edge
    assert compared


SACKED = """
    isn a 4294967000
    0.000  a > b S seq 0 win 64240 <mss 1460, sackOK, ws 7>
    0.010  b > a SA seq 0 ack 1 win 65160 <mss 1460, sackOK, ws 7>
    0.020  a > b A seq 1 ack 1 win 502
    0.021  a > b PA seq 1 ack 1 len 1000
    0.022  a > b PA seq 1001 ack 1 len 1000
    0.023  a > b PA seq 2001 ack 1 len 1000
    0.024  a > b PA seq 3001 ack 1 len 1000
    0.031  b > a A seq 1 ack 1 win 500 <sack 1001:2001>
    0.032  b > a A seq 1 ack 1 <sack 3001:4001 1001:2001>
"""


def test_sack_blocks_lie_on_the_axis_beyond_a_wrap(tmp_path: Path) -> None:
    path = tmp_path / "sacked.pcap"
    ladder.parse(SACKED).write_pcap(path)
    connection = tcpwin.analyze(path).connections[0]
    table = connection.view(rows=100).rows
    told = list(table.rows())
    assert [row["sequence"] for row in told] == [0, 0, 1, 1, 1001, 2001, 3001, 1, 1]
    names = [f"sack_{side}_{number}" for number in (1, 2, 3, 4) for side in ("left", "right")]
    assert [told[-1][name] for name in names] == [3001, 4001, 1001, 2001, None, None, None, None]
    assert [told[-2][name] for name in names] == [1001, 2001, None, None, None, None, None, None]
    assert told[-1]["right_edge"] == 1 + (500 << 7)
    assert connection.series("sacked").last.tolist()[-2:] == [1000, 2000]
    assert connection.series("sequence").last.tolist()[-1] == 4001


@all_cases("path", WHOLE, ids=name_of, of=3, first=1)
def test_bytes_over_time_add_up_to_the_fields(path: Path) -> None:
    analysis = analyze(path)
    for view in analysis.views(range(min(len(analysis), 8))):
        for direction in DIRECTIONS:
            fields = getattr(view.connection, direction)
            for name, sum_bytes in (
                ("throughput", fields.payload_bytes),
                ("goodput", fields.acked_bytes),
                ("resent", fields.resent_bytes),
            ):
                assert int(view.series(name, direction=direction).sum.sum()) == sum_bytes, (view, direction, name)


def test_pipe_is_flight_less_what_sack_reported() -> None:
    connection = tcpwin.analyze(BY_NAME["loss-1-percent.pcap.gz"], follow=[0], buckets=FINEST).connections[0]
    direction = max(DIRECTIONS, key=lambda name: int(getattr(connection, name).payload_bytes))
    flight, pipe, sacked = (connection.series(name, direction=direction) for name in ("flight", "pipe", "sacked"))
    assert sacked.max.max() > 0
    assert (flight.last - sacked.last).clip(0).tolist() == pipe.last.tolist()


def test_the_senders_window_is_the_receivers_one_trip_later() -> None:
    """At the receiver, the sender's known window is one that the receiver advertised earlier."""
    connection = tcpwin.analyze(BY_NAME["slow-reader-receiver.pcap.gz"], follow=[0], buckets=FINEST).connections[0]
    known, advertised = (connection.series(name, direction="b_to_a") for name in ("sender_window", "receive_window"))
    assert len(known) > 1000
    assert set(known.last.tolist()) <= {*advertised.last.tolist(), *advertised.max.tolist(), *advertised.min.tolist()}


@pytest.mark.parametrize(
    "name",
    [
        "slow-reader-receiver.pcap.gz",
        "receive-buffer-64k-receiver.pcap.gz",
        "lossy-path-receiver.pcap.gz",
        "lost-window-update-receiver.pcap.gz",
    ],
)
def test_the_senders_flight_falls_when_an_ack_reached_it(name: str) -> None:
    """Also between two data segments: the area under the curve equals the mean counted ACK by ACK."""
    connection = tcpwin.analyze(BY_NAME[name], follow=[0], buckets=FINEST).connections[0]
    direction = max(DIRECTIONS, key=lambda name: int(getattr(connection, name).payload_bytes))
    series = connection.series("sender_flight", direction=direction)
    holds_ns = np.diff(series.time_ns, append=connection.end_ns)
    mean = float((series.last * holds_ns).sum()) / float(holds_ns.sum())
    facts = getattr(connection, direction)
    assert mean == pytest.approx(facts.sender_flight_mean_bytes, rel=0.005)
    assert series.max.max() == facts.sender_flight_max_bytes


def test_percentiles_of_a_span_are_of_its_time() -> None:
    connection = analyze(BY_NAME["slow-reader.pcap.gz"]).connections[0]
    [episode, *_] = connection.b_to_a.zero_window_episodes
    view = connection.view(episode.start_ns, episode.end_ns - 1)
    assert view.percentiles("receive_window", direction="b_to_a").p99 == 0
    assert connection.view().percentiles("receive_window") == connection.percentiles("receive_window")
    assert connection.view().round_trips() == connection.round_trips()


def test_views_of_several_are_those_of_each() -> None:
    analysis = analyze(BY_NAME["many-short.pcap.gz"])
    ids = [40, 3, 64]
    views = analysis.views(ids, buckets=64, rows=1000)
    assert [view.connection.id for view in views] == ids
    for id, view in zip(ids, views, strict=True):
        alone = analysis.connections[id].view(buckets=64, rows=1000)
        assert list(view.rows.rows()) == list(alone.rows.rows())
        assert view.events == alone.events
        for name in _engine.SERIES_NAMES:
            assert as_buckets(view.series(name)) == as_buckets(alone.series(name))
    assert analysis.views([]) == []


def test_later_uses_of_a_four_tuple_are_separate(tmp_path: Path) -> None:
    text = (SCENARIOS / "connection-port-reuse.ladder").read_text(encoding="utf8")
    path = tmp_path / "reuse.pcap"
    ladder.parse(text).write_pcap(path)
    analysis = tcpwin.analyze(path)
    assert [connection.epoch for connection in analysis] == [0, 1]
    every = [row for row in analysis.segments().rows() if row["connection"] == 1]
    second = analysis.connections[1]
    assert list(second.segments().rows()) == every
    table = second.view(rows=100).rows
    assert table["frame"].tolist() == [row["frame"] for row in every]


def test_a_view_of_the_first_reading_costs_no_second(tmp_path: Path) -> None:
    path = shutil.copy(BY_NAME["keep-alive.pcap"], tmp_path / "once.pcap")
    analysis = tcpwin.analyze(path, follow=[0], buckets=32, rows=1000)
    Path(path).unlink()
    view = analysis.connections[0].view(rows=500)
    assert view.rows is not None
    assert len(view.series("sequence")) <= 32
    assert analysis.connections[0].view(rows=1).rows is None
    with pytest.raises(tcpwin.SourceError):
        analysis.connections[0].view(rows=1001)


def test_a_changed_capture_is_noticed(tmp_path: Path) -> None:
    path = Path(shutil.copy(BY_NAME["keep-alive.pcap"], tmp_path / "changed.pcap"))
    analysis = tcpwin.analyze(path)
    whole = path.read_bytes()
    [length] = struct.unpack_from("<I", whole, 24 + 8)
    last = whole[24 : 24 + 16 + length]
    path.write_bytes(whole + last)
    for again in (
        lambda: analysis.connections[0].view(),
        lambda: analysis.connections[0].segments(),
        lambda: analysis.follow([0]),
    ):
        with pytest.raises(tcpwin.TcpwinError, match="changed since it was analysed"):
            again()


@pytest.mark.parametrize(
    ("span", "message"),
    [
        ((5, 4), "ends at 4 ns, before it begins at 5 ns"),
        ((1 << 70, None), "not a valid time"),
        ((None, -(1 << 70)), "not a valid time"),
    ],
)
def test_invalid_spans_are_refused(span: tuple[Any, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        analyze(BY_NAME["keep-alive.pcap"]).connections[0].view(*span)
