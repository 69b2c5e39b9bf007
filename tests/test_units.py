"""Formatting of numbers for people: one form for a value on every surface."""

from __future__ import annotations

import re
import sys

import pytest
from cases import all_cases
from hypothesis import given
from hypothesis import strategies as st

from tcpwin.units import (
    binary_text,
    bytes_text,
    clock_text,
    count_text,
    name_text,
    rate_text,
    rest_text,
    share_text,
    short_name,
    time_text,
)

SIZES = {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
BINARY = {"B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}
RATES = {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9, "Tbit/s": 1e12}
TIMES = {"µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9, "d": 86_400e9}
AMOUNTS = st.integers(0, 10**15) | st.floats(0, 1e15)


@all_cases(
    ("count", "text"),
    [
        (0, "0 B"),
        (0.0001, "less than 0.001 B"),
        (0.0278, "0.028 B"),
        (1, "1 B"),
        (999, "999 B"),
        (999.96, "1 kB"),
        (1000, "1 kB"),
        (1234, "1.23 kB"),
        (65_535, "65.5 kB"),
        (99_950, "100 kB"),
        (999_499, "999 kB"),
        (999_500, "1 MB"),
        (999_999, "1 MB"),
        (3_000_000_000, "3 GB"),
        (5e15, "5,000 TB"),
        (None, "unknown"),
    ],
)
def test_sizes(count: float | None, text: str) -> None:
    assert bytes_text(count) == text


@all_cases(
    ("rate", "text"),
    [(0, "0 bit/s"), (7.14, "7 bit/s"), (6_034_567, "6.03 Mbit/s"), (14.1e9, "14.1 Gbit/s"), (None, "no rate")],
)
def test_rates(rate: float | None, text: str) -> None:
    assert rate_text(rate) == text


@all_cases(
    ("ns", "text"),
    [
        (0, "0 s"),
        (1_500, "1.5 µs"),
        (999_000, "999 µs"),
        (999_499, "999 µs"),
        (999_500, "1 ms"),
        (271_000_000, "271 ms"),
        (999_499_999, "999 ms"),
        (999_800_000, "1 s"),
        (5_030_000_000, "5.03 s"),
        (119_400_000_000, "119 s"),
        (119_900_000_000, "2 min"),
        (120_000_000_000, "2 min"),
        (151_600_000_000, "2 min 32 s"),
        (7_140_000_000_000, "119 min"),
        (7_199_000_000_000, "2 h"),
        (10_950_000_000_000, "3 h 3 min"),
        (84 * 3_600_000_000_000, "3 d 12 h"),
        (7 * 86_400_000_000_000, "7 d"),
        (14_600 * 86_400_000_000_000, "14,600 d"),
        (None, "unknown"),
    ],
)
def test_times(ns: int | None, text: str) -> None:
    assert time_text(ns) == text


def test_counts() -> None:
    assert count_text(1, "packet") == "1 packet"
    assert count_text(0, "packet") == "0 packets"
    assert count_text(4586, "packet") == "4,586 packets"
    assert count_text(2, "entry", "entries") == "2 entries"


def test_names_stay_on_one_line_and_harmless() -> None:
    assert name_text("plain é → name.pcap") == "plain é → name.pcap"
    assert name_text("a\nb\tc\x1b[31m\x7f\u2028\ufffd") == "a\\nb\\tc\\x1b[31m\\x7f\\u2028\ufffd"


@all_cases(
    ("count", "text"), [(0, "0 B"), (1000, "0.977 KiB"), (65_536, "64 KiB"), (6 << 20, "6 MiB"), (512 << 20, "512 MiB")]
)
def test_sizes_in_powers_of_1024(count: int, text: str) -> None:
    assert binary_text(count) == text


@all_cases(
    ("share", "text"), [(0, "0 %"), (0.0001, "<1 %"), (0.006, "1 %"), (0.894, "89 %"), (1, "100 %"), (None, "unknown")]
)
def test_shares(share: float | None, text: str) -> None:
    assert share_text(share) == text


def test_moments_are_in_utc() -> None:
    assert clock_text(1_700_000_000_336_000_000) == "22:13:20.336"
    assert clock_text(1_700_000_000_336_000_000, with_date=True) == "2023-11-14 22:13:20.336"
    assert clock_text(None) == "-"


def test_a_capture_is_named_without_its_folders() -> None:
    assert short_name("/a/b/slow.pcap") == "slow.pcap"
    assert short_name("/a/b/slow.zip: hosts/x.pcap") == "slow.zip: hosts/x.pcap"


def read(text: str, units: dict[str, float]) -> float:
    words = text.split()
    return sum(
        float(number.replace(",", "")) * units[unit] for number, unit in zip(words[::2], words[1::2], strict=True)
    )


def assert_reads_as(value: float, text: str, units: dict[str, float]) -> None:
    """Check three significant digits, rounding to half a unit of the last, and the largest suitable unit."""
    number, unit = re.fullmatch(r"([\d,.]+) (\S+)", text).groups()  # type: ignore[union-attr]
    assert len(number.replace(",", "").replace(".", "").strip("0")) <= 3, text
    assert read(text, units) == pytest.approx(value, rel=0.005, abs=0.5 * min(units.values())), text
    if unit != list(units)[-1]:
        assert float(number.replace(",", "")) < 1000


@given(AMOUNTS.filter(lambda value: value == 0 or value >= 0.5))
def test_a_value_is_printed_with_three_digits(value: float) -> None:
    assert_reads_as(value, bytes_text(value), SIZES)
    assert_reads_as(value, binary_text(value), BINARY)
    assert_reads_as(value, rate_text(value), RATES)


@given(st.integers(1, 10**19) | st.floats(1, 1e19))
def test_a_time_is_printed_with_three_digits(ns: float) -> None:
    text = time_text(ns)
    number, unit, *rest = text.split()
    if unit in ("min", "h", "d"):
        assert number.replace(",", "").isdigit()
        assert not rest or 1 <= int(rest[0]) < {"min": 60, "h": 60, "d": 24}[unit]
    else:
        assert len(number.replace(",", "").replace(".", "").strip("0")) <= 3
        assert float(number) < 1000
        assert rest == []
    assert read(text, TIMES) == pytest.approx(ns, rel=0.005, abs=0.5)
    assert time_text(-ns) == f"-{text}"


@given(AMOUNTS, AMOUNTS)
def test_the_greater_value_never_reads_as_the_smaller_one(one: float, other: float) -> None:
    low, high = sorted((one, other))
    if low < 0.5:
        return
    for text, units in ((bytes_text, SIZES), (rate_text, RATES), (binary_text, BINARY)):
        assert read(text(low), units) <= read(text(high), units)
    if low >= 1:
        assert read(time_text(low), TIMES) <= read(time_text(high), TIMES)


@given(st.integers(0, sys.maxsize))
def test_one_is_singular_and_nothing_else_is(count: int) -> None:
    number, noun = count_text(count, "time").split()
    assert int(number.replace(",", "")) == count
    assert noun == ("time" if count == 1 else "times")


@all_cases(
    ("whole_ns", "part_ns", "text"),
    [
        (13_340_000_000, 12_566_000_000, "700 ms"),
        (30_085_000_000, 28_056_000_000, "2 s"),
        (30_085_000_000, 3_420_000_000, "26.7 s"),
        (6_740_000_000, 300_000_000, "6.44 s"),
        (246_200_000_000, 100_400_000_000, "2 min 26 s"),
        (10_000_000, 9_999_999, "0.001 µs"),
        (0, 0, "0 s"),
    ],
)
def test_a_rest_adds_up_as_it_is_written(whole_ns: int, part_ns: int, text: str) -> None:
    assert rest_text(whole_ns, part_ns) == text
