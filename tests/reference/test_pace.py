"""The pace of a transfer: rates per second, or per longer step for long connections."""

from __future__ import annotations

from pathlib import Path

from stories.story import Story

from tcpwin.reference.measured import measure_connection
from tcpwin.reference.pace import SECOND_NS, pace_of

CENTURIES_NS = 200 * 365 * 86_400 * SECOND_NS


def test_bytes_of_a_second_are_its_rate() -> None:
    pace = pace_of([(0, 100), (SECOND_NS // 2, 100), (SECOND_NS, 50), (3 * SECOND_NS, 10)])
    assert pace.rates_bps == (1600, 400, 0)


def test_bytes_of_many_seconds_are_not_one_seconds() -> None:
    steady = [(place * 8 * SECOND_NS, 8_000) for place in range(1000)]
    pace = pace_of(steady, width_ns=8 * SECOND_NS)
    assert set(pace.rates_bps) == {8_000}
    assert not pace.oscillates


def test_a_reader_of_fast_and_slow_seconds_is_known_by_steps_of_two() -> None:
    """Five fast seconds of twenty, in steps of 2 s: two fast ones, one mixed, seven slow ones."""
    loop = [2000, 2000, 1000, *[0] * 7]
    progress = [(place * 2 * SECOND_NS, count) for place, count in enumerate(loop * 3)]
    assert pace_of(progress, width_ns=2 * SECOND_NS).oscillates


def test_a_clock_that_jumps_by_centuries_costs_no_list_of_their_seconds() -> None:
    assert 90_000 < len(pace_of([(0, 100), (CENTURIES_NS, 100)]).rates_bps) < 110_000


def test_a_steady_transfer_of_hours_does_not_oscillate(tmp_path: Path) -> None:
    """A window of one segment over 4 s: 1460 bytes every 4 s are 2.92 kbit/s in every step."""
    story = Story().handshake(rtt=4, scaled=(502, 12))
    for _ in range(2600):
        story.burst("a", 1, spacing=0).wait(4)
        story.ack("b")
    measured = measure_connection(story.analyze(tmp_path).connections[0])
    assert measured.workload != "oscillating-reader"
    assert measured.best_second_bps is None
