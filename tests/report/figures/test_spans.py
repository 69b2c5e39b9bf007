"""Zoomed figures contain exactly the events of the span; sums and extremes are exact."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cases import all_cases
from report.figures.drawn import LOSS, SLOW_READER, STALL, connection, drawn, named, trace, zoomed
from report.standalone.made import of_a_week
from stories.story import Story

import tcpwin
from tcpwin import figures
from tcpwin.analysis import Series
from tcpwin.figures.drawing.curve import points_of, thin
from tcpwin.limits import ITEM_NAMES


def test_a_zoomed_figure_stays_in_its_span() -> None:
    for name in ("window", "time-sequence", "rtt", "budget"):
        figure = zoomed(name, LOSS, 2, 2.5)
        for each in figure.data:
            ends = np.asarray(each.x) + (np.asarray(each.width) if each.type == "bar" else 0)
            assert min(each.x) >= 2 - 1e-6, each.name
            assert max(ends) <= 2.5 + 1e-6, each.name


def test_zooming_shows_each_value_that_the_whole_life_merges() -> None:
    whole = trace(drawn("window", SLOW_READER), "in flight")
    part = trace(zoomed("window", SLOW_READER, 5, 5.2), "in flight")
    inside = [x for x in whole.x if 5 <= x <= 5.2]
    assert len(part.x) > 3 * len(inside)


def test_extremes_survive_thinning() -> None:
    random = np.random.default_rng(1)
    values = random.integers(0, 1000, 50_000)
    values[12_345], values[34_567] = 5_000, -5_000
    times = np.arange(50_000) * 1_000
    kept_times, kept = thin(times, values, 1000)
    assert len(kept) <= 1000
    assert {5_000, -5_000} <= set(kept.tolist())
    assert kept_times[0] == 0
    assert kept_times[-1] == times[-1]


def test_a_bucket_is_drawn_by_its_least_greatest_and_last_value() -> None:
    def column(*values: int) -> np.ndarray:
        return np.array(values, dtype=np.int64)

    series = Series("flight", column(0, 300), column(1, 7), column(9, 7), column(4, 7), column(0, 0), 300)
    times, values = points_of(series)
    assert values.tolist() == [1, 9, 4, 7]
    assert times.tolist() == [0, 100, 200, 300]


@pytest.mark.parametrize("path", [SLOW_READER, LOSS, STALL])
def test_the_least_and_greatest_window_are_drawn(path: object) -> None:
    window = trace(drawn("window", path), "receive window")  # type: ignore[arg-type]
    facts = connection(path).b_to_a  # type: ignore[arg-type]
    assert max(window.y) == facts.receive_window_max_bytes
    assert min(window.y) == facts.receive_window_min_bytes


@pytest.mark.parametrize("direction", ["a_to_b", "b_to_a"])
def test_the_band_adds_up_to_the_budget(direction: str) -> None:
    of = connection(SLOW_READER)
    figure = figures.draw("budget", of, direction=direction)
    # The client only acknowledges: the server's band is drawn either way, at the top or below.
    facts = of.b_to_a
    lane = 1 if direction == "b_to_a" else 0
    for item in ("zero_window", "small_window", "window_full", "application", "closed", "handshake"):
        spent_ms = getattr(facts, f"budget_{item}_ns") / 1e6
        (bars,) = named(figure, ITEM_NAMES[item])
        assert set(np.floor(np.asarray(bars.base) + 1e-3)) == {lane}
        assert float(np.asarray(bars.customdata).sum()) == pytest.approx(spent_ms, rel=1e-4, abs=1e-3)


def test_a_long_time_is_shown_to_the_microsecond(tmp_path: Path) -> None:
    """1,000.00004 s of silence, then 40 ms until the last segment's ACK, the end."""
    story = Story().handshake()
    for _ in range(2):
        story.burst("a", 1, spacing=0).wait(0.04)
        story.ack("b")
        story.wait(1000.00004)
    (bars,) = named(figures.draw("budget", story.analyze(tmp_path).connections[0]), "nothing to send")
    assert np.asarray(bars.customdata)[np.asarray(bars.base) >= 1].tolist() == pytest.approx([1_000_040.04], abs=5e-4)


def test_a_stretch_of_time_belongs_to_one_item_or_is_shared() -> None:
    figure = drawn("budget", SLOW_READER)
    tops = np.concatenate([np.asarray(each.base) + np.asarray(each.y) for each in figure.data])
    assert tops.max() <= 1.8 + 1e-5


def test_fast_recovery_is_where_the_loss_is() -> None:
    """Frame 1508, at 2.003643 s, is a retransmission; frame 1530's ACK covers it (tshark, tcp.ack)."""
    figure = zoomed("budget", LOSS, 1.9, 2.3)
    (bars,) = named(figure, "fast recovery")
    assert float(bars.x[0]) == pytest.approx(2.003, abs=0.002)
    assert float(bars.width[0]) == pytest.approx(0.05, abs=0.003)


def test_goodput_adds_up_to_what_was_acknowledged() -> None:
    goodput = trace(drawn("throughput", LOSS), "goodput")
    widths = np.diff(np.asarray(goodput.x))
    total = float((np.asarray(goodput.y)[:-1] * widths).sum() / 8)
    assert total == pytest.approx(connection(LOSS).b_to_a.acked_bytes, rel=1e-5)


def test_a_zoomed_rate_is_the_rate_of_the_span() -> None:
    throughput = trace(zoomed("throughput", LOSS, 2, 4), "throughput")
    rows = connection(LOSS).segments()
    origin_ns = connection(LOSS).start_ns
    times = np.asarray(rows["time_ns"])
    inside = (times >= origin_ns + 2 * 10**9) & (times <= origin_ns + 4 * 10**9) & (rows["direction"] == "b")
    sent = int(np.asarray(rows["length"])[inside].sum())
    total = float((np.asarray(throughput.y)[:-1] * np.diff(np.asarray(throughput.x))).sum() / 8)
    assert total == pytest.approx(sent, rel=1e-5)


def test_every_closed_window_of_a_span_is_shaded(tmp_path: Path) -> None:
    """1,500 closings, 10 ms each, 30 ms apart, 1,024 of which the analysis lists."""
    story = Story().handshake()
    for _ in range(1500):
        story.burst("a", 1, spacing=0).wait(0.02)
        story.ack("b", window=0)
        story.wait(0.01)
        story.ack("b", window=509)
    found = story.analyze(tmp_path).connections[0]
    whole = trace(figures.draw("window", found), "window closed")
    assert "among the 150 longest of 1,500" in whole.hovertemplate
    start_ns = found.start_ns + 42_050_000_000
    part = trace(figures.draw("window", found, start_ns=start_ns, end_ns=start_ns + 290_000_000), "window closed")
    assert np.asarray(part.x).tolist() == pytest.approx([42.06 + 0.03 * each for each in range(10)])
    assert np.asarray(part.width).tolist() == pytest.approx([0.01] * 10, abs=1e-8)
    assert part.customdata[0] == "closed for 10 ms, frames 4205 to 4206, ended by update"


def test_of_many_pauses_of_one_length_those_drawn_are_spread_over_the_axis(tmp_path: Path) -> None:
    week = tcpwin.analyze(of_a_week(tmp_path / "week.pcap")).connections[0]
    pauses = trace(figures.draw("window", week), "pause")
    hours = (np.asarray(pauses.x) - week.start_ns / 1e6) / 3.6e6
    assert len(hours) == 150
    assert np.diff(hours).min() > 0.9
    assert np.diff(np.append(hours, 7 * 24)).max() < 4


@all_cases("name", ["messages", "socket-distribution"])
@all_cases("span", [{"start_ns": 1}, {"end_ns": 1}, {"start_ns": 1, "end_ns": 2}])
def test_a_figure_of_all_of_a_life_takes_no_span(name: str, span: dict[str, int]) -> None:
    """Its numbers describe the whole connection, so a span would mislead."""
    subject = connection(SLOW_READER)
    assert subject.figure(name) is not None
    with pytest.raises(ValueError, match="takes no span"):
        subject.figure(name, **span)
