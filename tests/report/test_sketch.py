"""Sketches and bars of a few columns show the connection's behaviour, for crafted packets with known times."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from web.crafted import written, zero_window_connection

import tcpwin
from tcpwin.figures import LIFE_COLUMNS, SKETCH_BUCKETS, Sketch, draw_life, draw_sketch
from tcpwin.figures.drawing.theme import BUDGET_COLOURS
from tcpwin.figures.svg.sketch import COLUMNS, HEIGHT, colours_css
from tcpwin.limits import GROUPS
from tcpwin.render.view.budget import BAR_WIDTH, budget_bar

CAPTURES = Path(__file__).parents[2] / "captures"


def sketched(path: Path | bytes, direction: str) -> Sketch:
    analysis = tcpwin.analyze(path)
    [view] = analysis.views([0], buckets=SKETCH_BUCKETS)
    return draw_sketch(view, direction)


def columns_of(path: str) -> set[int]:
    """Return the columns taken by the parts of an area path."""
    return {
        column
        for start, count in re.findall(r"M(\d+) \d+(?:V\d+)?h(\d+)", path)
        for column in range(int(start), int(start) + int(count))
    }


def column_of(time_s: float) -> int:
    """Return the column of a time in a connection of 3 s."""
    return round(time_s * 10**9) * COLUMNS // (3 * 10**9 + 1)


def test_a_window_closed_from_a_tenth_of_the_life_to_its_end_is_a_band_there() -> None:
    """3 s; 1,000 bytes at 0.2 s and again, acknowledged at 0.3 s with a window of 0, which opens at 2.8 s."""
    drawn = sketched(written(zero_window_connection()), "a_to_b")
    # It closes and opens at column boundaries.
    assert columns_of(drawn.closed) == set(range(column_of(0.3) + 1, column_of(2.8) + 1))
    assert set(re.findall(r"v(\d+)", drawn.closed)) == {str(HEIGHT)}
    assert columns_of(drawn.flight) == set(range(column_of(0.2), column_of(0.3) + 1))
    # The window is known from the SYN/ACK on: 2,000 bytes, filled by both segments; the line ends with the connection.
    assert drawn.window.startswith(f"M{column_of(0.1)} 0h")
    assert f"V{HEIGHT}h" in drawn.window
    assert (drawn.top_bytes, drawn.window_max_bytes) == (2000, 2000)
    moved = sum(int(each) for each in re.findall(r"h(\d+)", drawn.window))
    assert column_of(0.1) + moved == COLUMNS


def test_shades_are_as_large_as_the_time_in_which_the_window_was_closed() -> None:
    """A reader that closed its window 66 times, in most columns, but for a fifth of the connection."""
    capture = CAPTURES / "lab" / "slow-reader.pcap.gz"
    drawn = sketched(capture, "b_to_a")
    connection = tcpwin.analyze(capture).connections[0]
    shades = re.findall(r"M\d+ 0h(\d+)v(\d+)", drawn.closed)
    area = sum(int(count) * int(height) for count, height in shades) / (COLUMNS * HEIGHT)
    assert area == pytest.approx(connection.b_to_a.zero_window_ns / connection.duration_ns, abs=0.5 / HEIGHT)
    assert len(columns_of(drawn.closed)) > COLUMNS / 2
    assert max(int(height) for _, height in shades) < HEIGHT


def test_a_window_far_above_the_flight_leaves_the_flight_visible() -> None:
    drawn = sketched(CAPTURES / "lab" / "idle-restart.pcap.gz", "b_to_a")
    heights = [HEIGHT - int(y) for y in re.findall(r"V(\d+)h", drawn.flight)]
    assert max(heights) >= HEIGHT // 3 - 1
    assert drawn.closed == ""
    data = tcpwin.analyze(CAPTURES / "lab" / "idle-restart.pcap.gz").connections[0].b_to_a
    assert drawn.top_bytes == 3 * (data.flight_max_bytes or 0) < drawn.window_max_bytes
    assert drawn.window_max_bytes == data.receive_window_max_bytes


def test_the_whole_connection_has_separate_columns_for_silences() -> None:
    """3 s: nothing happens from 0.3 s, when the window closes, until it opens at 2.8 s."""
    [view] = tcpwin.analyze(written(zero_window_connection())).views([0], buckets=4 * LIFE_COLUMNS)
    drawn = draw_life(view, "a_to_b")
    silent = [(each.start_ns, each.end_ns) for each in view.stalls]
    assert silent
    column_ns = view.connection.duration_ns / LIFE_COLUMNS
    middles = [(column, view.connection.start_ns + (column + 0.5) * column_ns) for column in range(LIFE_COLUMNS)]
    within = {column for column, ns in middles if any(start < ns < end for start, end in silent)}
    # Columns at the ends of a silence are half silent.
    assert within
    assert columns_of(drawn.silent) ^ within <= {c for c in within if c - 1 not in within or c + 1 not in within}
    moved = sum(int(each) for each in re.findall(r"h(\d+)", drawn.window))
    assert int(re.match(r"M(\d+)", drawn.window)[1]) + moved == LIFE_COLUMNS  # type: ignore[index]


def test_nothing_known_is_nothing_drawn() -> None:
    """Without the server's side, neither window nor flight of the client's data is known."""
    packets = [packet for packet in zero_window_connection() if packet["TCP"].sport != 80]
    drawn = sketched(written(packets), "a_to_b")
    assert (drawn.window, drawn.flight, drawn.closed) == ("", "", "")


@pytest.mark.parametrize("name", ["slow-reader", "loss-1-percent", "idle-restart"])
def test_a_bar_is_the_budget(name: str) -> None:
    connection = tcpwin.analyze(CAPTURES / "lab" / f"{name}.pcap.gz").connections[0]
    budget = connection.budget["b_to_a"]
    parts = budget_bar(budget.items_ns)
    assert sum(each.width for each in parts) == pytest.approx(BAR_WIDTH, abs=0.1)
    assert [each.width for each in parts] == sorted((each.width for each in parts), reverse=True)
    assert {each.group for each in parts} == {group for group, ns in budget.groups_ns.items() if ns}
    assert parts[0].group == budget.largest
    end = 0.0
    for each in parts:
        assert each.start == pytest.approx(end, abs=0.02)
        end = each.start + each.width
    assert budget_bar({}) == []


def test_each_group_has_its_colour_of_the_figures() -> None:
    css = colours_css()
    for group in GROUPS:
        assert f".{group.replace(' ', '-')} {{ --colour: {BUDGET_COLOURS[group]}; }}" in css
