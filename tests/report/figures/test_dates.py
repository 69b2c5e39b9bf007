"""An axis of hours and days has dates; the times are the packets'."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from report.figures.drawn import is_valid
from report.standalone.made import START_S, WEEK_S, of_a_week

import tcpwin
from tcpwin import figures

HOUR_NS = 3600 * 10**9


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> tcpwin.Connection:
    return tcpwin.analyze(of_a_week(tmp_path_factory.mktemp("week") / "week.pcap")).connections[0]


@pytest.mark.parametrize("name", ["window", "time-sequence", "throughput", "rtt", "budget", "timeline"])
def test_a_week_has_dates(name: str, week: tcpwin.Connection) -> None:
    figure = week.figure(name)
    is_valid(figure)
    axis = figure.layout.xaxis
    assert axis.type == "date"
    assert axis.title.text == "UTC, began 2020-09-13 12:26:40.000000"
    for each in figure.data:
        assert "%{x:" not in each.hovertemplate
        assert "%{x|" in each.hovertemplate or each.name == "pause"
        # A mean over an interval is drawn to its end.
        assert START_S * 1e3 <= np.min(each.x) <= np.max(each.x) <= (START_S + WEEK_S + 5000) * 1e3


def test_points_are_where_the_packets_are(week: tcpwin.Connection) -> None:
    traces = week.figure("window").data
    dots = next(each for each in traces if each.name == "in flight" and each.mode == "markers")
    # A word every hour from the first second on, the fourth frame.
    assert dots.x[1] - dots.x[0] == 3600e3
    assert dots.x[0] == (START_S + 1) * 1e3
    assert dots.customdata[0][0] == 4


def test_bars_are_as_wide_as_their_time(week: tcpwin.Connection) -> None:
    pauses = next(each for each in week.figure("window").data if each.name == "pause")
    assert np.allclose(pauses.width, 3600e3 - 40, atol=1)


def test_a_short_span_of_it_counts_seconds(week: tcpwin.Connection) -> None:
    def of(hours: float) -> Any:
        first_ns = week.start_ns + 50 * HOUR_NS
        return figures.draw("window", week, start_ns=first_ns, end_ns=first_ns + int(hours * HOUR_NS)).layout.xaxis

    assert of(2).type == "date"
    assert of(1.9).type is None
    assert of(1.9).range[0] == pytest.approx(50 * 3600 - 0.019 * 3600)
