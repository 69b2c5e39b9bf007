"""Figures stay readable: regressions found in pictures."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pytest
from report.figures.drawn import (
    BUNDLE,
    CAPTURES,
    IDLE_RESTART,
    LOSS,
    NAMES,
    SLOW_READER,
    STALL,
    analyzed,
    connection,
    drawn,
    named,
    nothing,
    trace,
)

from tcpwin import figures
from tcpwin.figures.drawing.theme import BUDGET_COLOURS
from tcpwin.figures.kinds.budget import patterns_of
from tcpwin.limits import GROUPS, ITEM_NAMES

SHORT_PATH = CAPTURES / "wild" / "lossy-path.pcapng.gz"
NEAR_RECEIVER = CAPTURES / "lab" / "slow-reader-receiver.pcap.gz"
ALIKE = 20
"""Distance of two colours (CIE 1976 L*a*b*) below which large areas are easily confused."""
BLINDNESS = {
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
}
"""In linear RGB: Machado, Oliveira, Fernandes, A Physiologically-based Model for Simulation of Color Vision
Deficiency (2009), severity 1.
"""


def seen(colour: str, blindness: str) -> np.ndarray:
    """Return the L*a*b* coordinates of a colour as perceived."""
    parts = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    linear = np.clip(np.array(BLINDNESS[blindness]) @ linear, 0, 1)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ linear / np.array([0.9505, 1.0, 1.089])
    roots = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * roots[1] - 16, 500 * (roots[0] - roots[1]), 200 * (roots[1] - roots[2])])


@pytest.mark.parametrize("blindness", BLINDNESS)
def test_no_two_parts_of_the_budget_look_alike(blindness: str) -> None:
    fills = {
        item: (BUDGET_COLOURS[group], pattern)
        for group, items in GROUPS.items()
        for item, pattern in zip(items, patterns_of(group), strict=False)
    }
    assert set(fills) == set(ITEM_NAMES)
    for (one, (colour, pattern)), (other, (other_colour, other_pattern)) in combinations(fills.items(), 2):
        distance = float(np.linalg.norm(seen(colour, blindness) - seen(other_colour, blindness)))
        assert pattern != other_pattern or distance > ALIKE, f"{one} and {other}: {distance:.0f}"


def test_advice_on_recording_has_no_escapes() -> None:
    empty = [figure for figure in (drawn(name, LOSS) for name in NAMES) if nothing(figure) is not None]
    assert len(empty) >= 3
    for figure in empty:
        [told] = (each.text for each in figure.layout.annotations)
        assert "\\" not in told
        assert re.sub(r"\s+", " ", told.replace("<br>", " ")) == f"Nothing to show: {nothing(figure)}."


def test_a_timeout_far_above_does_not_press_the_round_trips_flat() -> None:
    """Round trips of 30.5 ms, and a timeout of 230 ms that never expired."""
    figure = drawn("rtt", SHORT_PATH)
    most = max(float(max(trace(figure, name).y)) for name in ("round trip", "smoothed"))
    assert figure.layout.yaxis2.range[0] == 0
    assert most < figure.layout.yaxis2.range[1] < 1.2 * most
    assert "RTO far above, at most 231 ms: double-click to show it" in figure.layout.title.text


@pytest.mark.parametrize("path", [LOSS, STALL, IDLE_RESTART], ids=lambda path: path.name)
def test_a_timeout_that_fired_or_is_near_stays_in_view(path: object) -> None:
    figure = drawn("rtt", path)  # type: ignore[arg-type]
    assert figure.layout.yaxis2.range is None


def test_a_shifted_flight_is_noted() -> None:
    """At the receiver the flight exceeds the drawn window, which had not reached the sender yet."""
    figure = drawn("window", NEAR_RECEIVER)
    shift_ms = connection(NEAR_RECEIVER).b_to_a.sender_shift_ns / 1e6
    told = re.sub(r"<[^>]*>", " ", figure.layout.title.text)
    assert f"it had each ACK {shift_ms:.3g} ms" in re.sub(r"\s+", " ", told)
    assert "as the sender saw it" not in drawn("window", SLOW_READER).layout.title.text


def test_notes_make_a_figure_higher_not_its_curves_flatter() -> None:
    for name in ("rtt", "window", "throughput"):
        figure = drawn(name, NEAR_RECEIVER)
        rows = -(-len({each.legendgroup for each in figure.data}) // 2)
        assert figure.layout.height - figure.layout.margin.t - 19 * rows >= 300


def test_hosts_with_the_same_value_are_named_once() -> None:
    figure = figures.draw("socket-distribution", analyzed(BUNDLE), field="advmss_bytes")
    one, other = (each for each in figure.data if each.mode == "markers+text")
    assert list(one.x) == list(other.x) == [1448]
    assert (one.text, other.text) == (("p50, p95, p99",), ("",))
    assert other.hovertext == ("p50, p95, p99",)


def test_intervals_of_a_counter_are_distinguishable() -> None:
    """Three seconds with one window probe each are three bars."""
    for each in named(drawn("counters", BUNDLE), "receiver"):
        assert each.marker.line.width == 1
        assert each.marker.line.color == "#ffffff"
