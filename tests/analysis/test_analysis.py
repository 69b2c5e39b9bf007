"""The analysis object: a sequence of connections, the worst first on request, cached details, JSON, displays."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from analysis.bundled import READABLE, WHOLE, analyze, name_of, plain_bytes, rows_of
from cases import all_cases

import tcpwin
from tcpwin.limits import VERDICT_FIELDS, algorithms_of, describe_algorithms
from tcpwin.sources import FileSource

MANY = next(path for path in WHOLE if path.name == "many-short.pcap.gz")
IPERF = next(path for path in WHOLE if path.name == "iperf3-loopback.pcap.lz4")


class Counting(FileSource):
    """A source that counts how often it is opened."""

    opened = 0

    def open(self) -> Any:
        self.opened += 1
        return super().open()


def test_connections_are_a_sequence() -> None:
    analysis = analyze(MANY)
    connections = analysis.connections
    assert len(analysis) == len(connections) == 65
    assert [connection.id for connection in connections] == list(range(65))
    assert [connection.id for connection in analysis] == list(range(65))
    assert connections[-1].id == 64
    assert connections[-65].id == 0
    assert [connection.id for connection in connections[-3:]] == [62, 63, 64]
    assert [connection.id for connection in connections[60:200:2]] == [60, 62, 64]
    assert connections[70:] == []
    assert [connection.id for connection in reversed(connections)][:2] == [64, 63]
    for index in (65, -66, 1 << 40):
        with pytest.raises(IndexError, match=f"no connection {index}: the capture has 65"):
            connections[index]


def test_segments_of_a_connection_are_its_rows() -> None:
    analysis = analyze(MANY)
    for id in (0, 17, 64):
        expected = [row for row in rows_of(MANY) if row["connection"] == id]
        assert list(analysis.segments(connection=id).rows()) == expected
        assert list(analysis.connections[id].segments().rows()) == expected
        assert expected
    with pytest.raises(IndexError, match="no connection 65: the capture has 65"):
        analysis.segments(connection=65)


@all_cases("path", WHOLE, ids=name_of)
def test_worst_first(path: Path) -> None:
    analysis = analyze(path)

    def order(connection: tcpwin.Connection) -> tuple[int, int, int]:
        sides = (connection.a_to_b, connection.b_to_a)
        cost_ns = max(side.window_cost_ns for side in sides)
        return (-cost_ns, -sum(side.payload_bytes for side in sides), connection.id)

    expected = [connection.id for connection in sorted(analysis, key=order)]
    assert [connection.id for connection in analysis.worst(len(analysis))] == expected
    assert [connection.id for connection in analysis.worst(3)] == expected[:3]
    assert [connection.id for connection in analysis.worst()] == expected[:10]
    assert analysis.worst(0) == []


def test_worst_names_the_connection_with_the_stall() -> None:
    """Find the one stalling connection, which is in a separate capture, among 65 healthy ones."""
    stalled = next(path for path in WHOLE if path.name == "zero-window-loopback.pcap")
    analysis = tcpwin.analyze([MANY, stalled])
    assert len(analysis) == 66
    [worst] = analysis.worst(1)
    assert worst.b.port == 9001
    assert worst.a_to_b.zero_window_episode_count == 2


def test_details_are_read_once_when_asked_for() -> None:
    with MANY.open("rb") as file:
        source = Counting(file)
        analysis = tcpwin.analyze(source)
        assert source.opened == 1
        analysis.connections[3].series("flight")
        assert source.opened == 2
        analysis.connections[3].percentiles("flight")
        assert analysis.connections[3].events is not None
        analysis.connections[3].series("pipe", direction="b_to_a")
        analysis.follow([3])
        assert source.opened == 2
        analysis.follow([3, 4, 5])
        assert source.opened == 3
        for id in (3, 4, 5):
            analysis.connections[id].series("flight")
        assert source.opened == 3
        analysis.follow([])
        assert source.opened == 3


def test_details_of_the_first_pass_cost_no_second() -> None:
    with MANY.open("rb") as file:
        source = Counting(file)
        analysis = tcpwin.analyze(source, follow=[1, 2])
        analysis.connections[1].series("flight")
        analysis.connections[2].percentiles("receive_window")
        assert source.opened == 1
        analysis.connections[0].series("flight")
        assert source.opened == 2


def test_details_are_the_same_however_they_were_read() -> None:
    early = tcpwin.analyze(IPERF, follow=range(2)).connections[1]
    late = tcpwin.analyze(IPERF).connections[1]
    for name in ("flight", "receive_window"):
        assert early.series(name).max.tolist() == late.series(name).max.tolist()
        assert early.percentiles(name) == late.percentiles(name)
    assert early.events == late.events


@all_cases("path", READABLE, ids=name_of, of=6)
def test_events_of_the_first_pass_are_those_of_the_second(path: Path) -> None:
    source, other = (Counting(io.BytesIO(path.read_bytes())) for _ in range(2))
    early, late = tcpwin.analyze(source, events=True), tcpwin.analyze(other)
    assert [each.events for each in early.connections] == [each.events for each in late.connections]
    assert [each.stalls for each in early.connections] == [each.stalls for each in late.connections]
    assert source.opened == 1
    assert early.findings == late.findings
    assert [each.verdict for each in early.connections] == [each.verdict for each in late.connections]
    for there, back in zip(early.connections[:1], late.connections[:1], strict=True):
        assert there.series("flight").max.tolist() == back.series("flight").max.tolist()


@all_cases("path", READABLE, ids=name_of, of=6, first=1)
def test_events_are_the_rows_that_have_any(path: Path) -> None:
    columns = ("frame", "time_ns", "direction", "seq", "ack", "length", "window_raw")
    expected: dict[int, list[tuple[Any, ...]]] = {}
    for row in rows_of(path):
        if row["events"]:
            entry = (*(row[name] for name in columns), tuple(row["events"].split("|")))
            expected.setdefault(row["connection"], []).append(entry)
    analysis = analyze(path)
    analysis.follow(range(len(analysis)))
    for connection in analysis:
        told = [(*(getattr(event, name) for name in columns), event.names) for event in connection.events]
        assert told == expected.get(connection.id, [])


@all_cases("path", READABLE, ids=name_of, of=6, first=2)
def test_json_equals_the_attributes(path: Path) -> None:
    analysis = analyze(path)
    document = json.loads(analysis.to_json(fields=["all"]), parse_constant=pytest.fail)
    assert document["schema"] == "tcpwin/analysis/2"
    assert document["name"] == analysis.name == str(path)
    assert document["capture"]["segments"] == analysis.capture.segments == len(rows_of(path))
    assert sum(file["packets"] for file in document["capture"]["files"]) == analysis.capture.packets
    assert len(document["connections"]) == len(analysis)
    for connection, entry in zip(analysis, document["connections"], strict=True):
        groups = {group: entry.pop(group) for group in ("a_to_b", "b_to_a")}
        verdict, budget = entry.pop("verdict"), entry.pop("budget")
        assert verdict == {name: getattr(connection.verdict, name) for name in VERDICT_FIELDS}
        for group, drawn_up in connection.budget.items():
            assert budget[group] == {
                "items_ns": {item: ns for item, ns in drawn_up.items_ns.items() if ns},
                "kernel": None,
            }
        assert entry.pop("algorithm") == describe_algorithms(algorithms_of(connection))
        assert entry == connection.fields
        for group, fields in groups.items():
            check_direction(getattr(connection, group), fields)
    assert analysis.to_json() == tcpwin.analyze(path).to_json()


def check_direction(direction: tcpwin.Direction, fields: dict[str, Any]) -> None:
    evidence, episodes = fields.pop("window_scale_evidence"), fields.pop("zero_window_episodes")
    scale = direction.window_scale
    assert tuple(evidence) == scale.evidence
    assert [tcpwin.ZeroWindowEpisode(**episode) for episode in episodes] == list(direction.zero_window_episodes)
    for name in ("state", "shift", "disabled_by"):
        assert fields.pop(f"window_scale_{name}") == getattr(scale, name)
    assert (fields.pop("window_scale_min"), fields.pop("window_scale_max")) == (scale.shift_min, scale.shift_max)
    for name, value in fields.items():
        assert getattr(direction, name) == value, name


def test_json_in_chunks_and_of_one_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    analysis = analyze(MANY)
    text = analysis.to_json()
    whole = json.loads(text)
    monkeypatch.setattr("tcpwin.limits.verdict_document.ROWS", 8)
    monkeypatch.setattr("tcpwin.limits.verdict_document.FEW", 0)
    assert analysis.to_json() == text
    file = io.StringIO()
    analysis.write_json(file, connection=64)
    assert json.loads(file.getvalue()) == whole | {"connections": whole["connections"][64:]}


def test_columns_of_all_connections_equal_json() -> None:
    analysis = analyze(MANY)
    entries = json.loads(analysis.to_json())["connections"]
    for name in ("a_port", "a_to_b.payload_bytes", "b_to_a.receive_window_mean_bytes", "close"):
        group, dot, field = name.partition(".")
        expected = [entry[group][field] if dot else entry[name] for entry in entries]
        assert analysis.connections.column(name).tolist() == expected


def test_displays_describe_the_object() -> None:
    analysis = analyze(MANY)
    assert repr(analysis).startswith(f"<Analysis of {MANY}: 747 packets, 65 connections. ")
    assert repr(analysis.connections) == "<Connections: 65>"
    slow = analyze(next(path for path in WHOLE if path.name == "slow-reader.pcap.gz")).connections[0]
    expected = "<Connection 0: 10.9.2.2:36984 → 10.9.1.1:5201, 30.088 s, 0 B out, 6000000 B back, reset. "
    assert repr(slow).startswith(expected)
    series = slow.series("flight", direction="b_to_a")
    assert repr(series) == f"<Series flight: {len(series)} buckets of {series.width_ns} ns>"
    six = analyze(next(path for path in WHOLE if path.name == "http-ipv6.pcap.zst")).connections[0]
    assert str(six.a) == "[::1]:37020"


def test_displays_count_warnings() -> None:
    cut = next(path for path in READABLE if path.name == "cut-block.pcapng")
    assert repr(analyze(cut)).startswith(f"<Analysis of {cut}: 5 packets, 1 connection, 1 warning. ")


def test_html_escapes_the_name(tmp_path: Path) -> None:
    path = tmp_path / "<script>alert('x')<b>&.pcap"
    path.write_bytes(next(path for path in WHOLE if path.name == "keep-alive.pcap").read_bytes())
    analysis = tcpwin.analyze(path)
    html = analysis._repr_html_()
    assert "<script" not in html
    assert "<b>" not in html
    assert "&lt;b&gt;&amp;.pcap" in html
    assert html.count("<table>") == html.count("</table>") == 2
    assert "<td>9002</td>" in html
    assert "<caption>Connection 0: 127.0.0.1:42942 → 127.0.0.1:9002</caption>" in analysis.connections[0]._repr_html_()


def long_capture(tool: Callable[[str], str], at_least_bytes: int) -> io.BytesIO:
    """A capture with repeated packets, longer than a progress step."""
    data = plain_bytes(next(path for path in WHOLE if path.name == "zero-window-stall.pcap.gz"), tool)
    head, records = data[:24], data[24:]
    return io.BytesIO(head + records * (at_least_bytes // len(records) + 1))


def test_progress_receives_the_bytes_read(tool: Callable[[str], str]) -> None:
    file = long_capture(tool, 40 << 20)
    told: list[int] = []
    tcpwin.analyze(file, progress=told.append)
    assert len(told) >= 2
    assert told == sorted(told)
    assert 0 < told[-1] <= len(file.getvalue())


def test_an_error_in_progress_comes_through(tool: Callable[[str], str]) -> None:
    def stop(_: int) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        tcpwin.analyze(long_capture(tool, 40 << 20), progress=stop)
