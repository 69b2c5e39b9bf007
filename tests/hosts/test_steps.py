"""A series as a function of time: single samples, and buckets with several samples."""

from __future__ import annotations

import numpy as np
from cases import all_cases

from tcpwin.analysis import Series
from tcpwin.hosts import Seen
from tcpwin.hosts.steps import Steps


def series(rows: list[tuple[int, int, int, int]], width_ns: int = 1) -> Steps:
    """Return steps of rows (time, minimum, maximum, last)."""
    times, least, most, last = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    return Steps(Series("sequence", times, least, most, last, last, width_ns))


ALONE = series([(100, 0, 0, 0), (200, 10, 10, 10), (300, 10, 10, 10), (400, 25, 25, 25)])
BUCKETS = series([(1000, 0, 8, 8), (2000, 8, 15, 15), (5000, 12, 40, 40)], width_ns=1000)


def test_ends() -> None:
    assert (len(ALONE), ALONE.start_ns, ALONE.end_ns, ALONE.greatest) == (4, 100, 400, 25)
    assert (len(BUCKETS), BUCKETS.start_ns, BUCKETS.end_ns, BUCKETS.greatest) == (3, 1000, 5999, 40)
    assert ALONE.times.tolist() == [100, 200, 300, 400]


@all_cases(
    ("steps", "value", "reached_ns", "exceeded_ns"),
    [
        # The value began there and ended with the second sample.
        (ALONE, 0, None, 200),
        (ALONE, -5, None, 100),
        (ALONE, 1, 200, 200),
        (ALONE, 10, 200, 400),
        (ALONE, 24, 400, 400),
        (ALONE, 25, 400, None),
        # Never: not before the end.
        (ALONE, 26, 400, None),
        (ALONE, 10**18, 400, None),
        # At the beginning of the bucket at the earliest, at its end at the latest.
        (BUCKETS, 8, None, 2999),
        (BUCKETS, 9, 2000, 2999),
        (BUCKETS, 15, 2000, 5999),
        (BUCKETS, 40, 5000, None),
        (BUCKETS, 41, 5999, None),
    ],
)
def test_when_a_growing_quantity_reaches_a_value_and_leaves_it(
    steps: Steps, value: int, reached_ns: int | None, exceeded_ns: int | None
) -> None:
    assert (steps.reached_ns(value), steps.exceeded_ns(value)) == (reached_ns, exceeded_ns)


def test_a_first_value_that_was_not_known_yet_is_below_the_second() -> None:
    """Without a SYN, SND.UNA before the first ACK is 0; the ACK shows that it was lower."""
    late = series([(100, 0, 0, 0), (200, -500, -500, -500), (300, -400, -400, -400), (400, 50, 50, 50)])
    assert [late.reached_ns(value) for value in (-500, -450, 0, 50)] == [None, 300, 400, 400]
    assert [late.exceeded_ns(value) for value in (-501, -500, -1, 50)] == [100, 300, 400, None]


@all_cases(("time_ns", "value"), [(99, None), (100, 0), (199, 0), (200, 10), (399, 10), (400, 25), (10**18, 25)])
def test_value_at_a_time(time_ns: int, value: int | None) -> None:
    assert ALONE.at(time_ns) == value


@all_cases(
    ("first_ns", "at_ns", "last_ns", "expected"),
    [
        (150, 150, 150, Seen(0, 0, 0)),
        (150, 250, 450, Seen(10, 0, 25)),
        # A value at the first time counts; one after the last does not.
        (200, 250, 399, Seen(10, 10, 10)),
        (50, 60, 250, Seen(None, 0, 10)),
        (10, 20, 99, None),
        (500, 600, 700, Seen(25, 25, 25)),
    ],
)
def test_values_between_two_times(first_ns: int, at_ns: int, last_ns: int, expected: Seen | None) -> None:
    assert ALONE.seen(first_ns, at_ns, last_ns) == expected


@all_cases(
    ("first_ns", "at_ns", "last_ns", "expected"),
    [
        # Anywhere in the bucket: all its values.
        (2500, 2600, 2700, Seen(15, 8, 15)),
        (2500, 2600, 5000, Seen(15, 8, 40)),
        (3500, 4000, 4500, Seen(15, 8, 15)),
        (500, 600, 1000, Seen(None, 0, 8)),
        (500, 600, 999, None),
    ],
)
def test_values_between_two_times_of_buckets(first_ns: int, at_ns: int, last_ns: int, expected: Seen | None) -> None:
    assert BUCKETS.seen(first_ns, at_ns, last_ns) == expected


def test_values_at_many_times() -> None:
    times = np.array([0, 100, 250, 400, 999], dtype=np.int64)
    assert ALONE.values_at(times).tolist() == [0, 0, 10, 25, 25]


def test_seen_holds_what_lies_within() -> None:
    seen = Seen(5, 2, 9)
    assert [seen.holds(value) for value in (1, 2, 5, 9, 10)] == [False, True, True, True, False]
