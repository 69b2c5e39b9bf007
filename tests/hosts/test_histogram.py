"""Histograms of bpftrace and bcc: complete samples against their texts, and percentiles by hand."""

from __future__ import annotations

from typing import Any

import pytest
from cases import all_cases
from hosts.truth_files import ANY_TEXT, read, read_text
from hypothesis import given
from hypothesis import strategies as st
from reference import ABSENT, ROOT

from tcpwin.hosts import SnapshotFile
from tcpwin.hosts.histogram import Bucket, HistogramSample

SEED = ROOT.parent / "shared" / "seeds" / "cloudflare-wan.txt"


def histogram(line: int, name: str, *buckets: tuple[int | None, int | None, int], **rest: Any) -> HistogramSample:
    values = {"time_ns": None, "key": None, "unit": None, **rest}
    return HistogramSample(line=line, name=name, buckets=tuple(Bucket(*each) for each in buckets), **values)


def cloudflare(*lines: int) -> list[HistogramSample]:
    """The article's three histograms, which begin at these lines."""
    by_two = ((0, 1, 27093), (1, 2, 0), (2, 4, 0), (4, 8, 0), (8, 16, 0), (16, 32, 0), (32, 64, 16))
    counts_146p3 = (0, 0, 0, 0, 0, 0, 1, 6, 6, 3)
    counts_137p4 = (0, 0, 0, 0, 0, 1, 8, 2)
    by_four_146p3 = [(16 + 4 * step, 20 + 4 * step, count) for step, count in enumerate(counts_146p3)]
    by_four_137p4 = [(16 + 4 * step, 20 + 4 * step, count) for step, count in enumerate(counts_137p4)]
    return [
        histogram(lines[0], "ms", *by_two, unit="ms"),
        histogram(lines[1], "ms", (None, 16, 25984), *by_four_146p3, unit="ms"),
        histogram(lines[2], "ms", (None, 16, 37222), *by_four_137p4, unit="ms"),
    ]


def test_the_latencies_of_collapsing() -> None:
    samples, unknown = read("histogram", "cloudflare.txt")
    assert samples == cloudflare(3, 14, 29)
    assert [text for _, text in unknown] == [
        "tcp_rmem 170 MiB, tcp_adv_win_scale +2 (170p2):",
        "tcp_rmem 146 MiB, tcp_adv_win_scale +3 (146p3):",
        "tcp_rmem 137 MiB, tcp_adv_win_scale +4 (137p4):",
    ]


def test_the_article_has_these_three() -> None:
    if not SEED.is_file():
        pytest.skip(ABSENT)
    assert list(SnapshotFile(SEED, format="histogram")) == cloudflare(349, 360, 375)


def test_maps_with_keys_suffixes_and_open_ends() -> None:
    samples, unknown = read("histogram", "bpftrace-keys.txt")
    assert samples == [
        histogram(
            *(5, "usecs", (0, 1, 3), (1, 2, 0), (512, 1024, 4), (1024, 2048, 1), (524_288, 1_048_576, 1)),
            *((1_073_741_824, 2_147_483_648, 1), (1_099_511_627_776, 2_199_023_255_552, 1)),
            key="tcp_rcv, 12",
            unit="usecs",
        ),
        histogram(14, "", (None, 0, 2), (512, None, 8), key="-9"),
        histogram(18, "", (-4, -2, 1)),
    ]
    assert unknown == []


def test_funclatency_with_its_average() -> None:
    samples, unknown = read("histogram", "funclatency.txt")
    assert samples == [
        histogram(*(6, "tcp_try_rmem_schedule", (0, 2, 0), (2, 4, 5), (512, 1024, 17)), unit="nsecs", average=601)
    ]
    assert unknown == []


def test_a_section_for_each_process() -> None:
    samples, unknown = read("histogram", "runqlat-pids.txt")
    assert samples == [
        histogram(4, "", (0, 2, 2), key="pid = 1234", unit="usecs"),
        histogram(8, "", (4, 8, 9), (8, 16, 1), key="pid = 0", unit="usecs"),
    ]
    assert unknown == []


def test_linear_rows_and_stamps() -> None:
    samples, unknown = read("histogram", "linear.txt")
    assert samples == [
        histogram(2, "", (0, 1, 3), (1, 2, 30), unit="kbytes", time_ns=1795288970_000_000_000),
        histogram(6, "", (0, 1, 4), unit="kbytes", time_ns=1795288971_000_000_000),
    ]
    assert unknown == []


def test_rows_of_an_older_bpftrace() -> None:
    """Before 0.10 some ranges were closed: ``(...,0]`` and ``[0, 1]`` include their upper bound."""
    samples, unknown = read_text("histogram", "@x:\n(...,0]   2 |@@|\n[0, 1]   3 |@@@|\n[100,...)    1 |@|\n")
    assert samples == [histogram(1, "x", (None, 1, 2), (0, 2, 3), (100, None, 1))]
    assert unknown == []


def test_rows_that_a_mail_program_broke() -> None:
    samples, unknown = read_text("histogram", "13:39:55 @wait_ns:\n[512, 1K)   3 |\n    |\n[1K, 2K)   390\n|@@@@|\n")
    assert samples == [histogram(1, "wait_ns", (512, 1024, 3), (1024, 2048, 390), unit="ns")]
    assert unknown == []


def test_a_counter_is_not_a_histogram() -> None:
    samples, unknown = read_text("histogram", "@cnt: 5\n@ms:\n[0]   1 |@|\n")
    assert samples == [histogram(2, "ms", (0, 1, 1), unit="ms")]
    assert unknown == [(1, "@cnt: 5")]


@all_cases(
    ("share", "expected"),
    [
        # 26,000 in total: 25,984 are below 16 ms, then 1, 6, 6 and 3.
        (0, Bucket(None, 16, 25984)),
        (0.5, Bucket(None, 16, 25984)),
        (0.9993, Bucket(None, 16, 25984)),  # rank ⌈25981.8⌉ = 25,982
        (0.9994, Bucket(40, 44, 1)),  # rank ⌈25984.4⌉ = 25,985
        (0.9995, Bucket(44, 48, 6)),  # rank 25,987
        (0.9999, Bucket(52, 56, 3)),  # rank 25,998
        (1, Bucket(52, 56, 3)),
    ],
)
def test_percentiles_are_buckets(share: float, expected: Bucket) -> None:
    sample = cloudflare(1, 1, 1)[1]
    assert (sample.total, sample.percentile(share)) == (26_000, expected)


def test_a_tenth_of_ten_is_the_first() -> None:
    """In binary, 0.1 is slightly more than a tenth."""
    assert histogram(1, "", (0, 1, 1), (1, 2, 9)).percentile(0.1) == Bucket(0, 1, 1)


def test_the_spikes_of_the_article() -> None:
    """16 calls of 170p2 took 32 ms or more; 16 of 146p3 and 11 of 137p4 took 36 ms or more."""
    first, second, third = cloudflare(1, 1, 1)
    assert (first.at_least(32), second.at_least(36), third.at_least(36)) == (16, 16, 11)
    assert (first.unit_ns, histogram(1, "x").unit_ns, histogram(1, "x", unit="kbytes").unit_ns) == (10**6, None, None)


def test_no_percentile_of_nothing_or_beyond_all() -> None:
    assert histogram(1, "", (0, 1, 0)).percentile(0.5) is None
    for share in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="between 0 and 1"):
            histogram(1, "", (0, 1, 1)).percentile(share)


@given(ANY_TEXT)
def test_any_text_never_raises(text: str) -> None:
    samples, _ = read_text("histogram", "@x:\n[0] 7 |@|\n" + text)
    assert samples[0].buckets[0] == Bucket(0, 1, 7)


PIECES = [
    "@ms:",
    "[0]",
    "[1K, 2K)",
    "(..., ",
    "9" * 25,
    " 5 ",
    "|@@@|",
    "\n",
    "0 -> 1",
    " : ",
    "count     distribution",
]


@given(st.lists(st.sampled_from(PIECES), max_size=30))
def test_pieces_in_any_order_never_raise(pieces: list[str]) -> None:
    samples, _ = read_text("histogram", "x" + "".join(pieces))
    assert all(sample.buckets for sample in samples)
