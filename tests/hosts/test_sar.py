"""`sar -n TCP,ETCP`: output of sysstat 12.6.1 on a host with 38 new connections a second, and other forms."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from cases import all_cases
from hosts.truth_files import ANY_TEXT, read, read_text
from hypothesis import given

from tcpwin.hosts import CounterSample, SnapshotFile

HEAD = "Linux 6.18.44-x (host) \t{} \t_x86_64_\t(2 CPU)\n\n"
TCP = "{}     active/s passive/s    iseg/s    oseg/s\n"
ETCP = "{}     atmptf/s  estres/s retrans/s isegerr/s   orsts/s\n"
NIGHT = (
    HEAD.format("12/31/26")
    + TCP.format("23:59:59")
    + "00:00:00         1.00      2.00      3.00      4.00\n\n"
    + ETCP.format("23:59:59")
    + "00:00:00         0.00      0.00      5.00      0.00      0.00\n\n"
    + TCP.format("00:00:00")
    + "00:00:01         6.00      7.00      8.00      9.00\n\n"
    + ETCP.format("00:00:00")
    + "00:00:01         0.00      0.00     10.00      0.00      0.00\n"
)
TRUTHS = {"night": NIGHT}


def ns(*moment: int, zone: timezone = UTC) -> int:
    return int(datetime(*moment, tzinfo=zone).timestamp()) * 10**9  # type: ignore[arg-type,misc]


def at(samples: list[Any]) -> list[int | None]:
    return [sample.time_ns for sample in samples]


def test_reports_that_take_turns() -> None:
    """The host's /proc/net/snmp grew by 116 ActiveOpens, 58 PassiveOpens and 58 OutRsts around these three seconds."""
    samples, unknown = read("sar", "interleaved.txt")
    assert unknown == []
    assert at(samples) == [ns(2026, 11, 25, 3, 46, second) for second in (1, 2, 3)]
    assert samples[0] == CounterSample(
        time_ns=ns(2026, 11, 25, 3, 46, 1),
        line=4,
        values={
            "TcpActiveOpens": 38,
            "TcpPassiveOpens": 19,
            "TcpInSegs": 351,
            "TcpOutSegs": 370,
            "TcpAttemptFails": 19,
            "TcpEstabResets": 0,
            "TcpRetransSegs": 0,
            "TcpInErrs": 0,
            "TcpOutRsts": 19,
        },
        is_increment=True,
        rates={
            "TcpActiveOpens": 38.0,
            "TcpPassiveOpens": 19.0,
            "TcpInSegs": 351.0,
            "TcpOutSegs": 370.0,
            "TcpAttemptFails": 19.0,
            "TcpOutRsts": 19.0,
        },
    )
    sums = {name: sum(sample.values[name] for sample in samples) for name in samples[0].values}
    assert (sums["TcpActiveOpens"], sums["TcpPassiveOpens"], sums["TcpOutRsts"]) == (116, 58, 58)


def test_one_report_after_the_other() -> None:
    samples, unknown = read("sar", "by-report.txt")
    assert unknown == []
    assert at(samples) == [ns(2026, 11, 25, 3, 46, second) for second in (9, 10)]
    assert [sample.values["TcpOutSegs"] for sample in samples] == [366, 360]
    assert [sample.values["TcpOutRsts"] for sample in samples] == [19, 19]


def test_midnight() -> None:
    samples, unknown = read_text("sar", NIGHT)
    assert unknown == []
    assert at(samples) == [ns(2027, 1, 1, 0, 0, second) for second in (0, 1)]
    assert [(sample.values["TcpOutSegs"], sample.values["TcpRetransSegs"]) for sample in samples] == [(4, 5), (9, 10)]


@all_cases(
    ("text", "day"),
    [
        ("11/25/26", (2026, 11, 25)),
        ("2026-11-25", (2026, 11, 25)),
        ("25/11/26", (2026, 11, 25)),
        ("25.11.2026", (2026, 11, 25)),
        ("05.11.2026", (2026, 11, 5)),
        ("11/25/2026", (2026, 11, 25)),
    ],
)
def test_dates(text: str, day: tuple[int, int, int]) -> None:
    rows = TCP.format("10:00:00") + "10:00:01         1.00      2.00      3.00      4.00\n"
    assert at(read_text("sar", HEAD.format(text) + rows)[0]) == [ns(*day, 10, 0, 1)]


def test_halves_of_the_day_and_zones() -> None:
    rows = TCP.format("11:59:59 AM") + "12:00:00 PM         1,00      2,00      3,00      4,00\n"
    text = HEAD.format("11/25/2026") + rows
    assert at(read_text("sar", text)[0]) == [ns(2026, 11, 25, 12, 0, 0)]
    east = timezone(timedelta(hours=5))
    [sample] = SnapshotFile(text.encode(), zone=east)
    assert sample.time_ns == ns(2026, 11, 25, 12, 0, 0, zone=east)


def test_long_intervals_hide_rare_events() -> None:
    rows = ETCP.format("10:00:00") + "10:10:00         0.00      0.50      0.00      0.00      0.00\n"
    [sample] = read_text("sar", HEAD.format("2026-11-25") + rows)[0]
    assert sample.values == {"TcpEstabResets": 300}


def test_other_reports_restarts_and_averages_are_passed_over() -> None:
    text = (
        HEAD.format("2026-11-25")
        + "10:00:00        IFACE   rxpck/s   txpck/s\n10:00:01           lo      1.00      1.00\n"
        + "10:00:01     LINUX RESTART\t(2 CPU)\n\n"
        + TCP.format("10:00:02")
        + "10:00:03         1.00      2.00      3.00      4.00\n"
        + "Average:         1.00      2.00      3.00      4.00\n"
    )
    samples, unknown = read_text("sar", text)
    assert (at(samples), unknown) == ([ns(2026, 11, 25, 10, 0, 3)], [])
    assert samples[0].values["TcpActiveOpens"] == 1


@pytest.mark.parametrize("row", ["10:00:01 1.00 2.00 3.00", "10:00:01 1.00 2.00 3.00 4", "10:00:01 1.00 2.00 3.00 nan"])
def test_a_row_that_is_cut_is_counted(row: str) -> None:
    samples, unknown = read_text("sar", HEAD.format("2026-11-25") + TCP.format("10:00:00") + row + "\nshe said no\n")
    assert samples == []
    assert [line for _, line in unknown] == [row, "she said no"]


@given(ANY_TEXT)
def test_any_text_is_read_or_rejected(text: str) -> None:
    read_text("sar", NIGHT + text)
