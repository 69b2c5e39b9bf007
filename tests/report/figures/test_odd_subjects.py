"""A figure of any capture is drawn, or says why there is nothing to show; plotly accepts every property."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ladder
import pytest
from analysis.bundled import READABLE, name_of
from report.figures.drawn import NAMES, SLOW_READER, is_valid, nothing
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from scapy.utils import wrpcap
from spread import some_by_day

import tcpwin
from tcpwin import figures

SCENARIOS = sorted((Path(__file__).parents[2] / "scenarios").glob("*.ladder"))
GROUPS = 12


def segment(source: str, flags: str, seq: int, ack: int, *, data: int = 0, time: float = 0.0, **more: Any) -> Packet:
    ends = {"a": ("10.0.0.1", 40_000), "b": ("10.0.0.2", 80)}
    (src, sport), (dst, dport) = ends[source], ends["b" if source == "a" else "a"]
    header = TCP(sport=sport, dport=dport, flags=flags, seq=seq, ack=ack, window=1000, **more)
    packet = Ether() / IP(src=src, dst=dst) / header / Raw(b"x" * data)
    packet.time = 1_600_000_000 + time
    return packet


SUBJECTS = {
    "one SYN": [segment("a", "S", 1, 0)],
    "one data segment": [segment("a", "PA", 1, 1, data=100)],
    "one ACK": [segment("b", "A", 1, 500)],
    "one way": [segment("a", "A", 1 + 1000 * each, 1, data=1000, time=each / 100) for each in range(20)],
    "only ACKs": [segment("b", "A", 1, 1 + 1000 * each, time=each / 100) for each in range(20)],
    "one instant": [segment("a", "A", 1 + 1000 * each, 1, data=1000) for each in range(20)],
    "clock runs backwards": [
        segment("a", "A", 1 + 1000 * each, 1, data=1000, time=1 - each / 100) for each in range(20)
    ],
    "a week": [segment("ab"[each % 2], "A", 1, 1, data=each % 3, time=each * 86_400.0) for each in range(8)],
    "sequence numbers far apart": [
        segment("ab"[each % 2], "A", each * 3_000_000_000 % 2**32, each * 2_000_000_000 % 2**32, data=10, time=each)
        for each in range(9)
    ],
}


def draw_all(analysis: tcpwin.Analysis, **options: Any) -> None:
    """Draw everything of every connection, complete and zoomed, in both directions."""
    for name in figures.names("analysis"):
        assert is_valid(figures.draw(name, analysis))
    for connection in analysis.connections[:3]:
        for name in figures.names("connection"):
            for direction in ("a_to_b", "b_to_a"):
                assert is_valid(figures.draw(name, connection, direction=direction, **options))
        middle_ns = (connection.start_ns + connection.end_ns) // 2
        assert is_valid(figures.timeline(connection, theme="dark"))
        for span in ({"start_ns": middle_ns}, {"end_ns": middle_ns + 1}):
            for name in ("window", "time-sequence", "throughput", "budget", "rtt"):
                assert is_valid(figures.draw(name, connection, **span))


@pytest.mark.parametrize("subject", some_by_day(SUBJECTS))
def test_few_packets(subject: str, tmp_path: Path) -> None:
    path = tmp_path / "few.pcap"
    wrpcap(str(path), SUBJECTS[subject])
    draw_all(tcpwin.analyze(path))


def few(subject: str, folder: Path) -> Any:
    """Return the connection of a subject."""
    path = folder / "few.pcap"
    wrpcap(str(path), SUBJECTS[subject])
    return tcpwin.analyze(path).connections[0]


def test_an_unknown_flight_is_not_drawn_as_zero(tmp_path: Path) -> None:
    connection = few("one way", tmp_path)
    assert connection.a_to_b.flight_max_bytes is None
    figure = figures.draw("window", connection, direction="a_to_b")
    assert [each.name for each in figure.data if each.name in ("in flight", "pipe")] == []
    for name in ("flight", "pipe", "acknowledged"):
        assert len(connection.series(name, direction="a_to_b")) == 0
        assert len(connection.view(connection.start_ns).series(name, direction="a_to_b")) == 0
    assert connection.series("sequence", direction="a_to_b").last[-1] == 20_000


def test_it_is_said_that_the_other_side_was_not_captured(tmp_path: Path) -> None:
    connection = few("one data segment", tmp_path)
    figure = figures.draw("window", connection, direction="a_to_b")
    assert nothing(figure) == "no segment of b was captured, so window and flight are unknown"
    figure = figures.draw("time-sequence", few("one way", tmp_path), direction="a_to_b")
    assert "No ACK of b was captured" in figure.layout.title.text


def test_what_only_acks_were_captured_of_is_acknowledged_yet_not_in_flight(tmp_path: Path) -> None:
    connection = few("only ACKs", tmp_path)
    assert len(connection.series("acknowledged", direction="a_to_b")) == 20
    assert len(connection.series("flight", direction="a_to_b")) == 0


def test_less_than_a_bit_a_second_is_not_scaled_up(tmp_path: Path) -> None:
    """A thousandth would have the prefix m, which reads as a million, so tenths are written out."""
    figure = figures.draw("throughput", few("a week", tmp_path))
    assert max(max(each.y) for each in figure.data) < 1
    (stop,) = figure.layout.yaxis2.tickformatstops or figure.layout.yaxis.tickformatstops
    assert (list(stop.dtickrange), stop.value) == ([None, 0.99], ",.3~r")
    assert all("bit/s" in each.hovertemplate and "s}bit/s" not in each.hovertemplate for each in figure.data)


@pytest.mark.parametrize("subject", ["one data segment", "one instant"])
def test_an_instant_makes_no_rate(subject: str, tmp_path: Path) -> None:
    figure = figures.draw("throughput", few(subject, tmp_path), direction="a_to_b")
    assert nothing(figure) == "all of it has the same timestamp, so there is no rate"


@pytest.mark.parametrize("path", some_by_day(READABLE, of=20), ids=name_of)
def test_bundled_captures(path: Path) -> None:
    draw_all(tcpwin.analyze(path))


@pytest.mark.parametrize("group", some_by_day(range(GROUPS), of=12))
def test_scenarios(group: int, tmp_path: Path) -> None:
    """The suite's ladders cover TCP's odd cases."""
    for place, source in enumerate(SCENARIOS[group::GROUPS]):
        path = tmp_path / f"{place}.pcap"
        ladder.parse(source.read_text(encoding="utf8"), source.name).write_pcap(path)
        analysis = tcpwin.analyze(path)
        for name in NAMES:
            if figures.get(name).scope == "analysis":
                figures.draw(name, analysis)
            else:
                for connection in analysis.connections[:3]:
                    figures.draw(name, connection)


def test_no_connection_at_all(tmp_path: Path) -> None:
    path = tmp_path / "none.pcap"
    wrpcap(str(path), [Ether() / Raw(b"x" * 60)])
    analysis = tcpwin.analyze(path)
    assert len(analysis) == 0
    assert nothing(figures.draw("overview", analysis)) is not None
    assert nothing(figures.draw("socket-distribution", analysis)) is not None


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("socket-memory", "no snapshot has a socket of this connection"),
        ("counters", "no snapshot has counters"),
        ("socket-distribution", "no snapshot has a socket of the capture's connections: record some with"),
    ],
)
def test_without_snapshots_the_reason_is_shown(name: str, said: str) -> None:
    analysis = tcpwin.analyze(SLOW_READER)
    figure = figures.draw(name, analysis)
    assert said in (nothing(figure) or "")
    shown = figure.layout.annotations[0].text.replace("<br>", " ")
    assert shown.startswith(f"Nothing to show: {said}")
    assert not figure.data


def test_a_span_outside_the_connection_is_empty() -> None:
    connection = tcpwin.analyze(SLOW_READER).connections[0]
    for name in figures.names("connection"):
        if not figures.get(name).has_time_axis:
            continue
        figure = figures.draw(name, connection, start_ns=connection.end_ns + 10**9)
        assert nothing(figure) == "the connection has no segment in this span of time"


def test_an_uncertain_scale_is_noted_and_its_minimum_drawn() -> None:
    path = SLOW_READER.parent / "mid-connection.pcap.gz"
    connection = tcpwin.analyze(path).connections[0]
    scale = connection.b_to_a.window_scale
    assert scale.shift is None
    figure = figures.draw("window", connection, direction="b_to_a")
    assert f"shift {scale.shift_min} to {scale.shift_max}" in figure.layout.title.text
    least = next(each for each in figure.data if each.name == "window, at least")
    raw = connection.series("window_raw", direction="b_to_a")
    assert max(least.y) == int(raw.max.max()) << scale.shift_min
