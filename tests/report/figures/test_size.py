"""A figure's document stays small however long the connection was; the test measures bytes."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report.figures.drawn import OF_CONNECTION, nothing

import tcpwin
from tcpwin import figures
from tcpwin.figures.drawing.size import size_of

SEGMENTS = 120_000
MOST_BYTES = 150_000
OPTIONS: dict[str, Any] = {"direction": "a_to_b", "start_ns": None, "end_ns": None, "points": 1000, "theme": "light"}


def write_long(path: Path) -> None:
    """Write a transfer with a varying window, losses, full and closed windows: much to draw everywhere."""
    random = np.random.default_rng(7)
    ethernet = bytes.fromhex("02000000000b02000000000a0800")
    ends = (bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2)))
    time_ns, sent, acked = 1_600_000_000 * 10**9, 1, 1
    lost: list[int] = []
    chance = random.random(SEGMENTS)
    with path.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1))

        def put(from_a: bool, seq: int, ack: int, flags: int, window: int, data: int, options: bytes = b"") -> None:
            source, target = ends if from_a else ends[::-1]
            header = 20 + len(options)
            total = 20 + header + data
            ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, total, 0, 0x4000, 64, 6, 0, source, target)
            ports = (40_000, 80) if from_a else (80, 40_000)
            tcp = struct.pack(">HHIIBBHHH", *ports, seq % 2**32, ack % 2**32, header // 4 << 4, flags, window, 0, 0)
            packet = ethernet + ip + tcp + options
            seconds, rest = divmod(time_ns, 10**9)
            out.write(struct.pack("<IIII", seconds, rest, len(packet), 14 + total) + packet)

        scale = bytes((2, 4, 5, 0xB4, 1, 3, 3, 7))
        put(True, 0, 0, 0x02, 64_240, 0, scale)
        put(False, 0, 1, 0x12, 65_160, 0, scale)
        put(True, 1, 1, 0x10, 502, 0)
        for place in range(SEGMENTS // 2):
            time_ns += int(40_000 + 400_000 * chance[place])
            if lost and chance[place] < 0.3:
                put(True, lost.pop(0), 1, 0x18, 502, 1000)
            else:
                if chance[place] > 0.99:
                    lost.append(sent)
                else:
                    put(True, sent, 1, 0x18, 502, 1000)
                sent += 1000
            time_ns += 30_000
            acked = lost[0] if lost else sent
            window = 0 if place % 997 < 3 else 30 + int(900 * abs(np.sin(place / 700)))
            put(False, 1, acked, 0x10, window, 0)


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> tcpwin.Analysis:
    path = tmp_path_factory.mktemp("long") / "long.pcap"
    write_long(path)
    return tcpwin.analyze(path)


def test_it_is_long_and_full_of_events(long: tcpwin.Analysis) -> None:
    connection = long.connections[0]
    assert connection.a_to_b.segments + connection.b_to_a.segments > SEGMENTS * 0.9
    assert connection.a_to_b.retransmissions > 100
    assert connection.a_to_b.zero_window_episode_count > 50


@pytest.mark.parametrize("name", OF_CONNECTION)
def test_a_document_is_small(name: str, long: tcpwin.Analysis) -> None:
    # No reference is similar, so one is named.
    run = "lab-oscil-300ms/170p2-stock" if name.startswith("reference-") else None
    figure = figures.draw(name, long.connections[0], field=run)
    assert len(figure.to_json()) < MOST_BYTES
    assert nothing(figure) is None or name in ("socket-memory", "counters", "exchanges", "reference-runs")


def test_all_on_one_axis_is_no_larger(long: tcpwin.Analysis) -> None:
    figure = figures.timeline(long.connections[0])
    assert 100_000 < len(figure.to_json()) < MOST_BYTES
    series = {each.name: each for each in figure.data}
    # Drawing fewer points keeps the extremes.
    window = long.connections[0].series("receive_window", direction="a_to_b")
    assert (series["receive window"].y.min(), series["receive window"].y.max()) == (window.min.min(), window.max.max())
    assert 300 < len(series["receive window"].y) < 1000
    assert 30 < len(series["retransmitted"].y) < 150


def test_more_points_that_are_asked_for_are_given(long: tcpwin.Analysis) -> None:
    figure = figures.timeline(long.connections[0], points=4000)
    assert len(figure.to_json()) > MOST_BYTES


def test_two_connections_beside_each_other_are_no_larger(long: tcpwin.Analysis) -> None:
    pair = [("before", long.connections[0]), ("after", long.connections[0])]
    drawn = figures.plain_pair("window", pair, direction="a_to_b", points=1000, theme="light")
    assert 100_000 < size_of(drawn) < MOST_BYTES
    assert len(drawn["data"]) == 2 * len(figures.plain("window", long.connections[0], **OPTIONS)["data"])


@pytest.mark.parametrize("name", ["window", "time-sequence"])
def test_so_is_one_of_a_span(name: str, long: tcpwin.Analysis) -> None:
    connection = long.connections[0]
    for share in (2, 20, 200):
        end_ns = connection.start_ns + connection.duration_ns // share
        figure = figures.draw(name, connection, start_ns=connection.start_ns, end_ns=end_ns)
        assert len(figure.to_json()) < MOST_BYTES


def test_fewer_points_make_a_smaller_document(long: tcpwin.Analysis) -> None:
    sizes = [len(figures.draw("window", long.connections[0], points=points).to_json()) for points in (100, 1000)]
    assert sizes[0] < 0.7 * sizes[1]


def test_omitted_curves_are_noted(long: tcpwin.Analysis) -> None:
    title = figures.draw("window", long.connections[0]).layout.title.text
    assert f"retransmitted: 150 of {long.connections[0].a_to_b.retransmissions:,} drawn" in title
