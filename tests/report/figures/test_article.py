"""The two curves of "Optimizing TCP for high WAN throughput" (Cloudflare, 2022), for the lab's oscillating readers.

The article shows them for Iowa and Melbourne to Marseille ("receive window and bytes-in-flight"); each test quotes the
sentence that it checks. The reader is the article's: five seconds as fast as possible, fifteen hardly at all, three
times.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from cases import all_cases
from reference import LAB_RUNS
from report.figures.drawn import named, trace

import tcpwin
from tcpwin import figures

SIDES = ("snd", "rcv")
GUARD, STOCK, WIDE = (
    f"oscil_10mbit_300ms_{name}" for name in ("170p2_guard", "170p2_vanilla", "512m2_guard_vethtruesize")
)
SHARE = {GUARD: (1_782_579, 3 / 4), STOCK: (1_782_579, 3 / 4), WIDE: (5_368_709, 1 / 4)}
"""The third value of tcp_rmem in each run, and the share left by tcp_adv_win_scale (2, 2, −2) according to the
article.
"""
ROUND_S, ROUNDS = 20, 3
BUCKET_S = 0.12
"""Two buckets of a curve of one minute."""


@cache
def reader(run: str, side: str) -> Any:
    """Return a run's connection, captured on one side, with snapshots of both hosts."""
    said = [LAB_RUNS / run / f"ss_{end}.txt" for end in SIDES]
    (connection,) = tcpwin.analyze(LAB_RUNS / run / f"{side}.pcap.gz", snapshots=said).connections
    return connection


@cache
def drawn(name: str, run: str, side: str, first: float | None = None, last: float | None = None) -> Any:
    connection = reader(run, side)
    span = {"start_ns": first, "end_ns": last}
    found = {key: connection.start_ns + round(at * 1e9) for key, at in span.items() if at is not None}
    return figures.draw(name, connection, direction="b_to_a", **found)


def between(curve: Any, first: float, last: float) -> np.ndarray:
    """Return a curve's values in a span, in seconds of its axis."""
    x, y = np.asarray(curve.x, dtype=float), np.asarray(curve.y, dtype=float)
    return y[(x >= first) & (x <= last)]


@all_cases("side", SIDES)
@all_cases("run", SHARE, of=2)
def test_the_window_is_at_most_the_share_of_the_buffer_that_the_setting_leaves(run: str, side: str) -> None:
    """ "The maximum value that the receive window can be is limited by the amount of free memory"."""
    most = max(trace(drawn("window", run, side), "receive window").y)
    memory, share = SHARE[run]
    assert most <= memory * share
    if run == WIDE:
        assert most > 0.99 * memory * share


@all_cases("side", SIDES)
@all_cases("run", SHARE)
def test_the_window_goes_up_while_the_reader_is_fast_and_down_while_it_is_slow(run: str, side: str) -> None:
    """ "The size of the receive window can and does go up and down during the course of a TCP session"."""
    window = trace(drawn("window", run, side), "receive window")
    for start in range(0, ROUNDS * ROUND_S, ROUND_S):
        fast, slow = between(window, start + 2.5, start + 5), between(window, start + 11, start + 20)
        assert fast.min() > 4 * np.median(slow)
        assert fast.min() > 2.5 * slow.max()
        assert slow.min() < 0.02 * fast.min()


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("run", [STOCK, WIDE])
def test_in_flight_stays_under_an_open_window_and_follows_one_that_closes(run: str, side: str) -> None:
    """Path: 10 Mbit/s × 300 ms is 375 kB. "It is this receive window that often limits throughput"."""
    figure = drawn("window", run, side)
    flight, window = trace(figure, "in flight"), trace(figure, "receive window")
    for start in range(0, ROUNDS * ROUND_S, ROUND_S):
        fast = between(flight, start + 3, start + 5)
        assert 340_000 < fast.min() <= fast.max() < 375_000
        assert fast.max() < 0.6 * between(window, start + 3, start + 5).min()
        assert between(flight, start + 11.5, start + 20).max() < 200_000


@all_cases("run", SHARE)
@all_cases("first", [6.0, 13.0, 26.0, 52.0])
def test_no_more_is_in_flight_than_the_window_that_was_offered(run: str, first: float) -> None:
    """ "The maximum number of unacknowledged user payload bytes the sender should transmit (bytes-in-flight)"."""
    figure = drawn("window", run, "snd", first, first + 1.2)
    flight = trace(figure, "in flight")
    edge, window = trace(figure, "right edge − ACK"), trace(figure, "receive window")
    assert len(flight.x) > 4
    for at, most in zip(flight.x, flight.y, strict=True):
        offered = [
            float(curve.y[np.searchsorted(np.asarray(curve.x), at, side="right") - 1])
            for curve in (edge, window)
            if curve.x[0] <= at
        ]
        assert not offered or most <= max(offered)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("run", [STOCK, WIDE])
def test_the_receiver_stops_the_sender_only_while_it_reads_slowly(run: str, side: str) -> None:
    """ "The receiver can tell the sender to stop sending if … the receive buffers are full"."""
    figure = drawn("window", run, side)
    closed, window = trace(figure, "window closed"), trace(figure, "receive window")
    memory, buffer = (trace(drawn("socket-memory", run, side), name) for name in ("memory (r)", "buffer (rb)"))
    for start, width in zip(closed.x, closed.width, strict=True):
        # The first second of a round may still read what the previous one left.
        assert start % ROUND_S > 5 or start % ROUND_S < 0.5
        inside = between(window, start + BUCKET_S, start + width - BUCKET_S)
        assert not inside.any()
        full = [value[-1] for value in (between(each, start - 1, start) for each in (memory, buffer)) if len(value)]
        assert len(full) < 2 or full[0] > 0.9 * full[1]


@pytest.mark.parametrize("run", [STOCK, WIDE])
def test_the_band_names_the_receiver_while_it_is_slow_and_the_path_while_it_is_fast(run: str) -> None:
    """Compare the share of each bar in the sender's (upper) lane."""

    def share(names: tuple[str, ...], first: float, last: float) -> float:
        figure = drawn("budget", run, "snd", first, last)
        bars = [each for name in names for each in named(figure, name)]
        taken = [np.asarray(each.customdata)[np.asarray(each.base) >= 1 - 1e-3].sum() for each in bars]
        return float(sum(taken)) / 1e3 / (last - first)

    for start in range(0, ROUNDS * ROUND_S, ROUND_S):
        assert share(("window closed", "window too small", "window full"), start + 12, start + 19) > 0.75
        assert share(("path",), start + 3, start + 5) > 0.9


def test_without_collapse_the_sender_meets_losses_and_its_congestion_control_answers() -> None:
    """ "The sender's congestion control will notice the drop and/or ZeroWindow and will respond appropriately"."""
    figure = drawn("window", GUARD, "snd")
    assert len(trace(figure, "retransmitted").x) > 0
    flight = trace(figure, "in flight")
    most = [between(flight, start + 3, start + 5).max() for start in range(0, ROUNDS * ROUND_S, ROUND_S)]
    assert most[0] > 2 * most[1] > 3 * most[2]
    assert not named(drawn("window", STOCK, "snd"), "retransmitted")
