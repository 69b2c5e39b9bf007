"""Window, rate and round trip from each other: the articles' numbers, and round trips of the calculation."""

from fractions import Fraction

import pytest
from cases import all_cases
from hypothesis import given, settings
from hypothesis import strategies as st

from tcpwin.kernel import bdp_bytes, segments, window_rate_bps, window_rtt_ns

MS = 10**6
MBIT = 10**6


@all_cases(
    ("rtt_ns", "rate_bps", "window_bytes"),
    [
        # Cloudflare, 2022: "a BDP of 131MB".
        (300 * MS, 3500 * MBIT, 131_250_000),
        # "10 000 000 * 0,085 / 8 = 106250".
        (85 * MS, 10 * MBIT, 106_250),
        # "Tuning linux network stack", part 2: 3.75 MBytes.
        (30 * MS, 1000 * MBIT, 3_750_000),
        (200 * MS, 10 * MBIT, 250_000),
        # passt: "~ 10 Gbps bandwidth with 500ns to ~ 1 Gbps with 300 ms".
        (500, 10_000 * MBIT, 625),
        (300 * MS, 1000 * MBIT, 37_500_000),
        # A fraction of a byte in flight needs a whole byte.
        (1, 1, 1),
        (8 * 10**9 + 1, 1, 2),
        (Fraction(300 * MS), 3.5e9, 131_250_000),
    ],
)
def test_window_of_a_path(rtt_ns: int, rate_bps: int, window_bytes: int) -> None:
    assert bdp_bytes(rtt_ns, rate_bps) == window_bytes


@pytest.mark.parametrize(
    ("window_bytes", "rtt_ns", "rate_bps"),
    [
        # "65535 * 8 / 0,085 = 6,2 Mbit/s".
        (65_535, 85 * MS, 6_168_000),
        # 64K at 30 ms: 17.48 Mbit/s.
        (65_536, 30 * MS, Fraction(65_536 * 8 * 1000, 30)),
        # tcp_rmem 16 MiB at -2 is a window of 4 MiB; over 121 ms Cloudflare measured 276 Mbit/s, over 282 ms 120.
        (4 << 20, 121 * MS, Fraction((4 << 20) * 8 * 1000, 121)),
        (4 << 20, 282 * MS, Fraction((4 << 20) * 8 * 1000, 282)),
    ],
)
def test_rate_of_a_window(window_bytes: int, rtt_ns: int, rate_bps: Fraction) -> None:
    assert window_rate_bps(window_bytes, rtt_ns) == rate_bps


def test_rates_as_the_articles_round_them() -> None:
    assert round(float(window_rate_bps(65_535, 85 * MS)) / 1e6, 1) == 6.2
    assert round(float(window_rate_bps(65_536, 30 * MS)) / 1e6, 2) == 17.48
    assert round(float(window_rate_bps(4 << 20, 121 * MS)) / 1e6, 1) == 277.3
    assert round(float(window_rate_bps(4 << 20, 282 * MS)) / 1e6, 1) == 119.0
    # 512 MiB at -2: Cloudflare measured 3800 Mbit/s, "limited by the receive window".
    assert round(float(window_rate_bps(128 << 20, 282 * MS)) / 1e6) == 3808


def test_the_congestion_window_counts_segments() -> None:
    """Ably's line of ss: cwnd:10 mss:32768 rtt:0.023 wscale:7,7 … send 113975.7Mbps."""
    of_segments = window_rate_bps(10 * 32_768, 23_000)
    assert round(float(of_segments) / 1e6, 2) == 113_975.65
    of_shifted = window_rate_bps(10 << 7, 23_000)
    assert round(float(of_shifted) / 1e6, 1) == 445.2


def test_round_trip_of_a_window_and_a_rate() -> None:
    assert window_rtt_ns(131_250_000, 3500 * MBIT) == 300 * MS
    assert window_rtt_ns(65_536, 10 * MBIT) == Fraction(52_428_800)
    assert window_rtt_ns(1, 3) == Fraction(8 * 10**9, 3)


def test_segments_are_whole() -> None:
    # "What is the maximum window size in segments": 10 Mbit/s × 200 ms in segments of 1500 bytes.
    assert segments(bdp_bytes(200 * MS, 10 * MBIT)) == 166
    assert segments(1499) == 0
    assert segments(1500) == 1
    assert segments(14_480, 1448) == 10
    assert segments(0, 1448) == 0


@all_cases("value", [0, -1, -0.5, float("nan"), float("inf"), float("-inf"), 10**31, 1e-31, 10**400])
def test_an_unknown_measure_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="round trip"):
        bdp_bytes(value, 1)
    with pytest.raises(ValueError, match="rate"):
        bdp_bytes(1, value)
    with pytest.raises(ValueError, match="window"):
        window_rate_bps(value, 1)
    with pytest.raises(ValueError, match="window"):
        window_rtt_ns(value, 1)


@pytest.mark.parametrize(("window_bytes", "segment_bytes"), [(1000, 0), (1000, -1), (-1, 1500)])
def test_no_segments_of_nothing(window_bytes: int, segment_bytes: int) -> None:
    with pytest.raises(ValueError, match="no segments of"):
        segments(window_bytes, segment_bytes)


WINDOWS = st.integers(1, 1 << 40)
TIMES_NS = st.integers(1, 10**12)
RATES = st.one_of(st.integers(1, 10**13), st.fractions(Fraction(1, 1000), 10**13))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(WINDOWS, TIMES_NS)
def test_a_window_comes_back_from_its_rate(window_bytes: int, rtt_ns: int) -> None:
    rate_bps = window_rate_bps(window_bytes, rtt_ns)
    assert bdp_bytes(rtt_ns, rate_bps) == window_bytes
    assert window_rtt_ns(window_bytes, rate_bps) == rtt_ns


@settings(max_examples=200, deadline=None, derandomize=True)
@given(TIMES_NS, RATES)
def test_the_window_is_the_smallest_that_fills_the_path(rtt_ns: int, rate_bps: Fraction) -> None:
    window_bytes = bdp_bytes(rtt_ns, rate_bps)
    assert window_rate_bps(window_bytes, rtt_ns) >= rate_bps
    assert window_bytes == 1 or window_rate_bps(window_bytes - 1, rtt_ns) < rate_bps
