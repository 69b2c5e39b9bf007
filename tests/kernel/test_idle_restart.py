"""The congestion window after a pause: tcp_cwnd_restart, calculated by hand."""

import pytest
from cases import all_cases

from tcpwin.kernel import cwnd_after_idle, round_trips_to_regain

MS = 10**6


@all_cases(
    ("cwnd_segments", "idle_ms", "rto_ms", "after"),
    [
        # 180 ms of round trip, RTO 380 ms, a second of silence: two halvings.
        (80, 1000, 380, 20),
        (80, 380, 380, 80),
        (80, 381, 380, 40),
        (80, 760, 380, 40),
        (80, 761, 380, 20),
        (80, 1141, 380, 10),
        (80, 60_000, 380, 10),
        # An odd window rounds down: 33, 16, and then the minimum.
        (33, 570, 380, 16),
        (33, 950, 380, 10),
        # captures/lab/idle-restart.pcap.gz: 32 segments, 1819 ms of silence, RTO 500.6 ms.
        (32, 1819, 501, 10),
        # A window below the initial one is unchanged.
        (4, 60_000, 380, 4),
        (80, 0, 380, 80),
    ],
)
def test_window_after_a_pause(cwnd_segments: int, idle_ms: int, rto_ms: int, after: int) -> None:
    assert cwnd_after_idle(cwnd_segments, idle_ms * MS, rto_ms * MS) == after


def test_the_floor_is_the_initial_window_of_the_route() -> None:
    assert cwnd_after_idle(80, 60_000 * MS, 380 * MS, initial_window_segments=40) == 40
    assert cwnd_after_idle(80, 60_000 * MS, 380 * MS, initial_window_segments=1) == 1
    assert cwnd_after_idle(80, 10**30, 1, initial_window_segments=1) == 1


@pytest.mark.parametrize(("cwnd", "rto_ns", "initial"), [(0, 1, 10), (10, 0, 10), (10, 1, 0)])
def test_an_invalid_window_is_refused(cwnd: int, rto_ns: int, initial: int) -> None:
    with pytest.raises(ValueError, match="not all above 0"):
        cwnd_after_idle(cwnd, 1, rto_ns, initial_window_segments=initial)


@all_cases(
    ("before", "after", "round_trips"),
    [(80, 20, 2), (81, 20, 3), (80, 80, 0), (20, 80, 0), (80, 10, 3), (11, 10, 1), (1, 1, 0)],
)
def test_round_trips_lost(before: int, after: int, round_trips: int) -> None:
    assert round_trips_to_regain(before, after) == round_trips


def test_nothing_cannot_be_regained() -> None:
    with pytest.raises(ValueError, match="not both above 0"):
        round_trips_to_regain(10, 0)
