"""A full path, distinguished from windows that are full or losses that occur because of it.

Each segment takes its serialization time on the bottleneck, waits for earlier ones, and is acknowledged on arrival. The
rate, the queue, the round trips and the gain of a larger window therefore follow from a few numbers.
"""

from __future__ import annotations

from heapq import heappop, heappush
from pathlib import Path

import pytest
from stories.story import Story, judged

import tcpwin
from tcpwin import figures
from tcpwin.limits import Severity

MSS, HEADERS = 1460, 54
S = 1_000_000_000


def through_a_queue(folder: Path, *, rate_bps: float, round_trip: float, window: int, segments: int) -> tcpwin.Analysis:
    """The client's upload, captured at the client: slow start up to the server's constant window."""
    story = Story().handshake(round_trip, scaled=(502, window // 128))
    service = (MSS + HEADERS) * 8 / rate_bps
    free_at, cwnd, sent, acked = story.now, 10, 0, 0
    on_the_way: list[tuple[float, int]] = []
    while acked < segments:
        while sent < segments and sent - acked < min(cwnd, window // MSS):
            sent += 1
            free_at = max(free_at, story.now) + service
            heappush(on_the_way, (free_at + round_trip, sent))
            story.data("a", MSS, flags="PA" if sent == segments else "A")
        arrival, acked = heappop(on_the_way)
        story.wait(arrival - story.now)
        story.ack("b", upto=1 + acked * MSS)
        cwnd += 1
    return story.close(round_trip).analyze(folder)


def test_a_window_above_a_standing_queue_is_not_the_limit(tmp_path: Path) -> None:
    """44 segments wait for 1 Mbit/s, 530 ms above a round trip of 14 ms. A larger window lengthens the queue."""
    analysis = through_a_queue(tmp_path, rate_bps=1e6, round_trip=0.014, window=65_280, segments=500)
    [connection] = analysis
    data, verdict = connection.a_to_b, connection.verdict
    assert data.window_limited_ns > 0.8 * connection.duration_ns, "the window is full all the time"
    assert (verdict.limit, verdict.owner, verdict.fix) == ("path_rate", "nobody", None)
    assert verdict.share > 0.8
    assert data.path_rate_bps == pytest.approx(1e6 * MSS / (MSS + HEADERS), rel=0.05)
    assert data.queue_mean_ns == pytest.approx(44 * 12.1e6, rel=0.1)
    assert not [each for each in analysis.findings if each.cost_ns], "nothing that is full costs anything"
    # Four times the rate takes a quarter of the time, up to the window: 65 kB in 14 ms are far above it.
    assert verdict.cost_ns == pytest.approx(0.75 * connection.duration_ns, rel=0.1)


def test_the_same_window_without_a_queue_is_the_limit(tmp_path: Path) -> None:
    """65 kB in 140 ms are 3.7 Mbit/s on a path of 100."""
    analysis = through_a_queue(tmp_path, rate_bps=100e6, round_trip=0.14, window=65_280, segments=1000)
    [connection] = analysis
    verdict = connection.verdict
    assert (verdict.limit, verdict.owner) == ("receiver_window", "server_host")
    assert verdict.share > 0.7
    [finding] = judged(analysis, "TW207")
    assert 0 < finding.cost_ns <= verdict.cost_ns


def test_a_window_without_gain_has_no_warning_or_remedy(tmp_path: Path) -> None:
    """65 kB in 140 ms are 3.7 Mbit/s: a path of 3.5 Mbit/s is full, and a larger window only queues."""
    analysis = through_a_queue(tmp_path, rate_bps=3.5e6, round_trip=0.14, window=65_280, segments=1000)
    [connection] = analysis
    assert (connection.verdict.limit, connection.verdict.fix) == ("path_rate", None)
    found = analysis.findings
    [finding] = [each for each in found if each.code == "TW207"]
    assert (finding.cost_ns, finding.severity, finding.remedy) == (0, Severity.INFO, None)
    assert finding.text.endswith("but without it the connection would have ended no sooner")
    assert found.worst == Severity.INFO


def test_what_fills_the_path_is_drawn_above_a_window_that_is_a_quarter_of_it(tmp_path: Path) -> None:
    """The distance to the line is the answer, so the figure keeps the line in view; at a tenth it does not."""
    [of] = through_a_queue(tmp_path, rate_bps=15e6, round_trip=0.14, window=65_280, segments=1000)
    figure = figures.draw("path", of)
    [fill] = [each for each in figure.data if each.name == "fills the path"]
    assert 3 * 65_280 < fill.y[0] < 6 * 65_280
    assert "Out of view" not in figure.layout.title.text
    [far] = through_a_queue(tmp_path, rate_bps=100e6, round_trip=0.14, window=65_280, segments=1000)
    assert "Out of view: the flight that fills the path" in figures.draw("path", far).layout.title.text
