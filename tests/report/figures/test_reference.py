"""A connection and a reference run on the same axes, each with its own numbers; and missing references."""

from __future__ import annotations

import numpy as np
import pytest
from report.figures.drawn import CAPTURES, connection, is_valid, nothing, trace, value_at

import tcpwin
from tcpwin import figures
from tcpwin.reference import library, reference
from tcpwin.reference import trace as trace_of

RUN = "lab-bulk-300ms/512m2-stock"


@pytest.fixture(scope="module")
def small_window() -> tcpwin.Connection:
    path = CAPTURES / "reference" / "bulk-300ms-4m2-stock.zip"
    return tcpwin.analyze(path, capture="sender.pcap.gz").connections[0]


def test_window_and_flight_of_both(small_window: tcpwin.Connection) -> None:
    """Your window stays at 1 MiB minus rounding by the shift of 7; the run's is 128 MiB after 5 s, its flight 35 MB."""
    figure = figures.draw("reference-window", small_window)
    assert is_valid(figure)
    assert value_at(trace(figure, "your window"), 5.0) == small_window.b_to_a.receive_window_max_bytes
    assert value_at(trace(figure, "your flight"), 5.0) == pytest.approx(1 << 20, rel=0.01)
    assert value_at(trace(figure, "the run's window"), 6.0) == 128 << 20
    assert value_at(trace(figure, "the run's flight"), 6.0) == pytest.approx(941e6 / 8 * 0.3, rel=0.02)
    assert figure.layout.yaxis2.type == "log"
    assert RUN in figure.layout.title.text
    # All four share one pair of axes.
    assert len({(each.xaxis, each.yaxis) for each in figure.data}) == 1


def test_throughput_of_both(small_window: tcpwin.Connection) -> None:
    figure = figures.draw("reference-throughput", small_window)
    assert is_valid(figure)
    assert max(trace(figure, "the run's goodput").y) == pytest.approx(941.5e6, rel=0.002)
    yours = trace(figure, "your goodput")
    # The area below the curve is the acknowledged bytes.
    heights, edges = np.asarray(yours.y, dtype=float), np.asarray(yours.x)
    assert float(np.sum(heights[:-1] * np.diff(edges)) / 8) == pytest.approx(small_window.b_to_a.acked_bytes, rel=1e-6)


def test_both_share_a_timeline(small_window: tcpwin.Connection) -> None:
    options = {"direction": None, "start_ns": None, "end_ns": None, "points": 600, "theme": "light"}
    plain = figures.plain_timeline(small_window, ["reference-window", "reference-throughput"], field=RUN, **options)
    assert plain["layout"]["meta"]["figures"] == ["reference-window", "reference-throughput"]
    assert plain["layout"]["xaxis"]["title"]["text"] == "since each began"


def test_a_run_that_is_asked_for(small_window: tcpwin.Connection) -> None:
    figure = figures.draw("reference-window", small_window, field="lab-oscil-300ms/170p2-stock")
    course = trace_of(reference("lab-oscil-300ms").run("170p2-stock"))
    assert [float(each) for each in trace(figure, "the run's window").y] == [
        float(each) for each, time_ns in zip(course.window_bytes, course.time_ns, strict=True) if time_ns <= 6.6e9
    ]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("lab-bulk-300ms", "unknown run 'lab-bulk-300ms': write it as lab-bulk-300ms/512m2-stock"),
        ("lab-bulk-300ms/x", "unknown run"),
        ("cloudflare-oscil-300ms/170p2", "cloudflare-oscil-300ms/170p2 has no time course"),
    ],
)
def test_a_run_that_cannot_be_drawn_is_refused(small_window: tcpwin.Connection, name: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        figures.draw("reference-window", small_window, field=name)


def test_where_no_reference_is_near_the_figure_says_why() -> None:
    reason = nothing(figures.draw("reference-window", connection(CAPTURES / "wild" / "keep-alive.pcap")))
    assert reason is not None
    assert reason.startswith("no published run is near enough to compare with: no reference has its shape")


def test_a_rate_far_below_the_reference_is_seen(small_window: tcpwin.Connection) -> None:
    """26 Mbit/s next to 941 Mbit/s."""
    figure = figures.draw("reference-throughput", small_window)
    assert figure.layout.yaxis2.type == "log"
    low, high = (10.0**each for each in figure.layout.yaxis2.range)
    assert low < 26e6 < 941e6 < high


def test_a_closed_window_is_drawn_at_the_lower_edge() -> None:
    """A logarithmic axis has no zero: the note gives the position, and hovering the value."""
    path = CAPTURES / "lab" / "receive-buffer-64k.pcap.gz"
    figure = figures.draw("reference-window", tcpwin.analyze(path).connections[0], field="lab-oscil-300ms/170p2-stock")
    assert figure.layout.yaxis2.type == "log"
    assert all(float(each) > 0 for of in figure.data for each in of.y)
    assert "0 is at its lower edge" in figure.layout.title.text
    closed = trace(figure, "the run's window")
    assert "%{customdata" in closed.hovertemplate
    assert min(closed.customdata) == 0
    assert [shown for shown, told in zip(closed.y, closed.customdata, strict=True) if told > 0] == [
        told for told in closed.customdata if told > 0
    ]


def test_the_labs_runs_are_drawn_by_their_rates() -> None:
    """1.26 Mbit/s with a window of 32 kB, as in the run like it; slow start alone takes ten times less."""
    yours = tcpwin.analyze(CAPTURES / "lab" / "receive-buffer-64k.pcap.gz").connections[0]
    figure = figures.draw("reference-runs", yours)
    assert is_valid(figure)
    assert [each.name for each in figure.data][:3] == ["yours", "as you are", "one change better"]
    alike = trace(figure, "as you are")
    assert float(np.median(alike.y)) == pytest.approx(1.3e6, rel=0.3)
    assert max(trace(figure, "one change better").y) > 10 * max(alike.y)
    assert figure.layout.yaxis.type == "log" or figure.layout.yaxis2.type == "log"


def test_a_run_of_the_library_is_drawn_by_name(small_window: tcpwin.Connection) -> None:
    run = library()["full-300ms-20mbps"]
    figure = figures.draw("reference-window", small_window, field=run.full_name)
    drawn = trace(figure, "the run's flight").y.tolist()
    assert drawn == list(run.trace.flight_bytes[: len(drawn)])
    with pytest.raises(tcpwin.ArgumentError, match="the library has no run 'full-1ms'"):
        figures.draw("reference-window", small_window, field="library/full-1ms")


def test_without_a_run_of_the_lab_the_reason_is_given() -> None:
    small = connection(CAPTURES / "wild" / "keep-alive.pcap")
    reason = nothing(figures.draw("reference-runs", small))
    assert reason is not None
    assert "is unknown" in reason or "this one carried" in reason
