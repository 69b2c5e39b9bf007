"""Gains from lifting a limit, compared with times that follow from sizes and rates."""

from collections.abc import Mapping
from types import MappingProxyType

import pytest

from tcpwin.limits.life import Carried, Gain, Life

S = 1_000_000_000
# 100 MB over a path of 10 MB/s and 100 ms, with a window of 32 MB.
CARRIED = Carried(100_000_000, 80e6, 32_000_000, 65_536, 14_480, S // 10)


def lifted(
    times_s: dict[str, float],
    carried: Carried = CARRIED,
    *,
    is_growing: bool = False,
    silent_ns: Mapping[str, int] = MappingProxyType({}),
) -> Gain:
    times = {limit: int(time_s * S) for limit, time_s in times_s.items()}
    first = max(times, key=lambda limit: times[limit])
    return Life("a_to_b", times, silent_ns, carried, is_growing).gain(first)


@pytest.mark.parametrize("limit", ["receiver_window", "receiver_application", "send_buffer", "path_loss"])
def test_lifting_a_limit_leaves_the_path(limit: str) -> None:
    """The same bytes take 10 s at the path's rate."""
    assert lifted({limit: 40}).likely_ns == pytest.approx(30 * S)
    assert lifted({limit: 40}).high_ns == 40 * S
    assert lifted({limit: 9}).likely_ns == 0


def test_what_the_path_carried_is_not_the_limits() -> None:
    """The path took 6 s for 60 MB; the other 40 MB took 20 s at the window's pace, and need 4 s at the path's."""
    assert lifted({"receiver_window": 20, "path_rate": 6}).likely_ns == pytest.approx(16 * S)


def test_where_bytes_may_be_anybodys_the_bounds_are_apart() -> None:
    """50 MB in each of 10 s if spread evenly; all 100 MB for the smallest gain."""
    gain = lifted({"path_loss": 10.1, "congestion_control": 10})
    assert gain.likely_ns == pytest.approx(5.1 * S, rel=0.02)
    assert gain.low_ns == pytest.approx(0.1 * S, rel=0.02)
    assert gain.high_ns == 10.1 * S


def test_a_path_gains_up_to_the_window() -> None:
    assert lifted({"path_rate": 10}).likely_ns == pytest.approx(7.5 * S)
    twice = CARRIED._replace(window_bytes=2_000_000)
    assert lifted({"path_rate": 10}, twice).likely_ns == pytest.approx(5 * S)
    assert lifted({"receiver_window": 40}, twice).likely_ns == pytest.approx(30 * S), "itself is lifted"


def test_an_application_that_pauses_carries_nothing_then() -> None:
    assert lifted({"sender_application": 11, "path_rate": 10}).likely_ns == pytest.approx(11 * S)
    assert lifted({"sender_application": 40}).likely_ns == pytest.approx(30 * S), "one that paces"


def test_a_ramp_meets_the_window_that_begins_small() -> None:
    """From 14,480 to 57,920 bytes in two doublings: the window doubles from there, like the ramp."""
    short = CARRIED._replace(bytes=1_000_000, first_window_bytes=57_920)
    assert lifted({"congestion_control": 0.8}, short, is_growing=True).likely_ns == pytest.approx(0.2 * S)
    between = short._replace(first_window_bytes=86_880)
    assert lifted({"congestion_control": 0.8}, between, is_growing=True).likely_ns == pytest.approx(0.25 * S)
    wide = short._replace(first_window_bytes=8_000_000)
    assert lifted({"congestion_control": 0.8}, wide, is_growing=True).likely_ns == pytest.approx(0.6 * S)


@pytest.mark.parametrize("limit", ["sender_application", "send_buffer", "path_policer"])
def test_without_the_paths_rate_what_holds_a_sender_costs_two_thirds_of_its_time(limit: str) -> None:
    """Two thirds is within a factor of 1.5 of a gain of 44 % and of 100 %."""
    unknown = CARRIED._replace(path_bps=0)
    assert lifted({limit: 39}, unknown) == Gain(26 * S, 0, 39 * S)
    assert lifted({limit: 39}, unknown, silent_ns={limit: 9 * S}) == Gain(29 * S, 9 * S, 39 * S)


def test_without_the_paths_rate_four_times_of_it_gains_three_quarters() -> None:
    unknown = CARRIED._replace(path_bps=0)
    assert lifted({"path_rate": 40}, unknown) == Gain(30 * S, 0, 40 * S)
    for limit in ("path_loss", "receiver_window", "receiver_application"):
        assert lifted({limit: 40}, unknown) == Gain(40 * S, 0, 40 * S)
    assert lifted({"idle_restart": 3}) == Gain(3 * S, 3 * S, 3 * S)


def test_pauses_of_an_application_are_gained_whatever_the_path() -> None:
    """20 s of pauses, and 39 s of slow writing."""
    unknown = CARRIED._replace(path_bps=0, paused_ns=20 * S)
    assert lifted({"sender_application": 59}, unknown).likely_ns == 46 * S
    assert lifted({"send_buffer": 39}, unknown).likely_ns == 26 * S, "its pauses are another limit's"


def test_all_of_a_time_in_which_nothing_came_through_is_gained() -> None:
    """40 s of closed windows, and 20 s of full ones in which 100 MB passed, which take 10 s at the path's rate."""
    times_s = {"receiver_application": 60.0}
    silent = {"receiver_application": 40 * S}
    assert lifted(times_s, silent_ns=silent).likely_ns == pytest.approx(50 * S)
    assert lifted(times_s, silent_ns=silent).low_ns == pytest.approx(50 * S)
    only = {"receiver_application": 60 * S}
    assert lifted(times_s, silent_ns=only).likely_ns == pytest.approx(60 * S)
    assert lifted(times_s, CARRIED._replace(path_bps=0), silent_ns=silent).low_ns == 40 * S


def test_slow_start_cannot_be_gained() -> None:
    """From ten segments 10 MB take ten round trips of 85 ms, plus one for the handshake."""
    scaled = Carried(10_000_000, 1e9, 65_535, 65_535, 14_480, 85_000_000)
    gain = lifted({"receiver_window": 12.6, "handshake": 0.085}, scaled)
    assert gain.likely_ns == pytest.approx(12.6 * S - 10 * 85_000_000)
    assert (gain.low_ns, gain.high_ns) == (gain.likely_ns, int(12.6 * S))
    joined = scaled._replace(first_flight_bytes=0)
    assert lifted({"receiver_window": 12.6}, joined).likely_ns == pytest.approx(12.52 * S), "begun before the capture"
    short = {"congestion_control": 0.8, "handshake": 0.085}
    assert lifted(short, scaled).likely_ns == lifted(short, joined).likely_ns, "itself is lifted"
