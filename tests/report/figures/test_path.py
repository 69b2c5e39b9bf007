"""The path figure's rate, flight and queue match drawn worlds with a known bottleneck."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from report.figures.drawn import CAPTURES, LOSS, MANY_SHORT, connection, drawn, trace
from worlds.test_verdicts import CAPTURES as WORLDS
from worlds.test_verdicts import PAYLOAD, ids, truth_of

from tcpwin import figures

FULL = [path for path in WORLDS if "-003-" in path.name]
WINDOW = [path for path in WORLDS if "-012-" in path.name]
BUFFER_64K = CAPTURES / "lab" / "receive-buffer-64k.pcap.gz"


def rate_axis(figure: object) -> Any:
    """Return the axis of the delivery rate."""
    name = trace(figure, "delivery rate").yaxis  # type: ignore[arg-type]
    return figure.layout[name.replace("y", "yaxis")]  # type: ignore[attr-defined]


def shown_notes(figure: object) -> str:
    return str(figure.layout.title.text)  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", FULL, ids=ids)
def test_a_full_path_runs_along_its_rate_above_what_fills_it(path: object) -> None:
    route = truth_of(path).drawn["path"]  # type: ignore[arg-type]
    figure = drawn("path", path)  # type: ignore[arg-type]
    rate_bps = route["bottleneck_mbps"] * 1e6 * PAYLOAD
    limit, rates = trace(figure, "path's rate"), np.asarray(trace(figure, "delivery rate").y)
    assert float(limit.y[0]) == pytest.approx(rate_bps, rel=0.05)
    assert np.median(rates) == pytest.approx(rate_bps, rel=0.05)
    fill = float(trace(figure, "fills the path").y[0])
    assert fill == pytest.approx(rate_bps * route["rtt_ms"] / 8e3, rel=0.1)
    if "sender" in ids(path):  # type: ignore[arg-type]
        assert np.median(np.asarray(trace(figure, "in flight").y)) > 2 * fill
    else:
        assert "minus data queued before the capture point" in shown_notes(figure)
    waits_ms = np.asarray(trace(figure, "wait in queues").y)
    assert waits_ms.max() <= 1.1 * route["queue_bytes"] * 8e-3 / route["bottleneck_mbps"]
    assert np.median(waits_ms) > 0.3 * waits_ms.max()
    assert "Path full for 100 % of the time" in shown_notes(figure) or "Path full for 99 %" in shown_notes(figure)


@pytest.mark.parametrize("path", WINDOW, ids=ids)
def test_a_small_window_stays_in_view_below_what_fills_the_path(path: object) -> None:
    figure = drawn("path", path)  # type: ignore[arg-type]
    offered = int(np.asarray(trace(figure, "receive window").y).max())
    low, high = figure.layout.yaxis4.range
    assert (low, offered < high < 3 * offered) == (0, True)
    assert float(trace(figure, "fills the path").y[0]) > high
    assert "Out of view: the flight that fills the path" in shown_notes(figure)


def test_a_usual_rate_fills_its_panel_whatever_the_path_gives_and_the_last_round_shows() -> None:
    """1.3 Mbit/s on a path of 1.3 Gbit/s; a truncated last round briefly shows half of that."""
    figure = drawn("path", BUFFER_64K)
    rates = np.asarray(trace(figure, "delivery rate").y)
    low, high = rate_axis(figure).range
    assert rates.max() > 100 * high
    assert (low, float(np.median(rates)) > 0.7 * high) == (0, True)
    notes = " ".join(re.sub("<[^>]*>", " ", shown_notes(figure)).split())
    assert "Out of view: the path's rate, 1.28 Gbit/s; a momentary rate, 505 Mbit/s" in notes


def test_a_path_of_some_times_the_rate_stays_in_view() -> None:
    """1.5 of 23 Mbit/s: the distance to the line is the answer."""
    figure = drawn("path", WINDOW[0])
    assert rate_axis(figure).range is None
    assert float(trace(figure, "path's rate").y[0]) > 10 * np.median(np.asarray(trace(figure, "delivery rate").y))


def test_losses_at_random_strike_an_empty_queue() -> None:
    figure = drawn("path", LOSS)
    waits_ms = np.asarray(trace(figure, "wait in queues").y)
    assert np.median(waits_ms) < 0.1 * 50
    assert len(trace(figure, "retransmitted").x) > 40
    assert "Path full for 0 % of the time" in shown_notes(figure)


def test_without_a_round_trip_it_says_why() -> None:
    """The client sends one segment at a time."""
    figure = drawn("path", MANY_SHORT, direction="a_to_b")
    assert "no round trip with several segments in flight" in figure.layout.meta["nothing"]


def test_one_of_its_panels_is_in_a_timeline() -> None:
    figure = figures.timeline(connection(BUFFER_64K), ["path", "budget"])
    assert figure.layout.meta["figures"] == ["path", "budget"]
    headings = [each.text for each in figure.layout.annotations if each.text.startswith("<b>")]
    assert [text.partition("</b>")[0] for text in headings] == [
        "<b>Delivery rate",
        "<b>In flight",
        "<b>Waiting in queues",
        "<b>Where the sender's time went",
    ]


def test_a_timeline_shows_it_where_the_path_is_the_limit() -> None:
    """Shown for a full path and for a lossy one, but not if the window is the limit."""
    for path, is_shown in ((FULL[0], True), (LOSS, True), (WINDOW[0], False)):
        of = connection(path)
        assert (of.verdict.limit in ("path_rate", "path_loss")) is is_shown
        assert ("path" in figures.timeline(of).layout.meta["figures"]) is is_shown


def test_its_two_limits_look_different() -> None:
    """By dash and by colour, because one is a rate and the other bytes."""
    figure = drawn("path", FULL[0])
    rate, fill = trace(figure, "path's rate").line, trace(figure, "fills the path").line
    assert rate.dash != fill.dash
    assert rate.color != fill.color
    others = {each.line.color for each in figure.data if each.name not in ("path's rate", "fills the path")}
    assert not {rate.color, fill.color} & others
