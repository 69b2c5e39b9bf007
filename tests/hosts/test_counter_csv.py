"""Tables of counters: unambiguous short names are completed, invalid rows are omitted."""

from __future__ import annotations

import csv
from decimal import Decimal
from pathlib import Path

from cases import all_cases
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import LAB_RUNS

from tcpwin.hosts import CounterSample, UnknownLine
from tcpwin.hosts.formats.counter_csv import full_name, recognise
from tcpwin.hosts.formats.counter_csv import read as read_samples
from tcpwin.hosts.lines import Lines, Unknown

TRUTH = Path(__file__).parent / "truth" / "counter_csv"


def read(text: str) -> tuple[list[CounterSample], Unknown]:
    lines = Lines(text.splitlines(keepends=True))
    return list(read_samples(lines)), lines.unknown


def since_boot(time_ns: int | None, line: int, values: dict[str, int]) -> CounterSample:
    return CounterSample(time_ns, line, values, is_increment=False, rates={})


def test_rows_with_full_names_and_exact_times() -> None:
    samples, unknown = read((TRUTH / "table.csv").read_text(encoding="utf8"))
    assert samples == [
        since_boot(
            1_795_226_745_161_865_000,
            2,
            {
                "TcpExtPruneCalled": 0,
                "TcpRetransSegs": 3,
                "TcpExtTcpTimeoutRehash": 1,
                "InErrors": 0,
                "TcpExtTCPWinProbe": 2,
                "NoSuchCounter": 9,
            },
        ),
        since_boot(
            1_795_226_746_500_000_000,
            3,
            {
                "TcpExtPruneCalled": 4,
                "TcpExtTcpTimeoutRehash": 1,
                "InErrors": 0,
                "TcpExtTCPWinProbe": 2,
                "NoSuchCounter": 9,
            },
        ),
        since_boot(
            1_795_226_749_000_000_000,
            6,
            {
                "TcpExtPruneCalled": 4,
                "TcpRetransSegs": 5,
                "TcpExtTcpTimeoutRehash": 1,
                "InErrors": 0,
                "TcpExtTCPWinProbe": 2,
                "NoSuchCounter": 9,
            },
        ),
        since_boot(1_795_226_750_123_456_789, 8, {"TcpRetransSegs": -1}),
    ]
    assert unknown.count == 4
    assert unknown.first == [
        UnknownLine(4, "1795226747,4,5,1,0"),
        UnknownLine(5, "1795226748,4,five,1,0,2,9"),
        UnknownLine(9, "time,RetransSegs,TcpRetransSegs"),
        UnknownLine(10, "1795226751,18446744073709551616"),
    ]


def test_a_time_from_0_is_not_a_time() -> None:
    samples, unknown = read("time,PruneCalled\n0.0,1\n0.2,2\nnan,3\n-1,4\n")
    assert samples == [since_boot(None, 2, {"TcpExtPruneCalled": 1}), since_boot(None, 3, {"TcpExtPruneCalled": 2})]
    assert unknown.first == [UnknownLine(4, "nan,3"), UnknownLine(5, "-1,4")]


@all_cases(
    ("name", "full"),
    [
        ("PruneCalled", "TcpExtPruneCalled"),
        ("RetransSegs", "TcpRetransSegs"),
        ("InOctets", "IpExtInOctets"),
        ("InReceives", "IpInReceives"),
        ("InDatagrams", "UdpInDatagrams"),
        ("TcpTimeoutRehash", "TcpExtTcpTimeoutRehash"),
        ("TCPPrequeued", "TcpExtTCPPrequeued"),
        ("TcpRetransSegs", "TcpRetransSegs"),
        ("InErrors", "InErrors"),
        ("InCsumErrors", "InCsumErrors"),
        ("Unheard", "Unheard"),
    ],
)
def test_short_names_are_completed_where_one_section_has_them(name: str, full: str) -> None:
    assert full_name(name) == full


@all_cases(
    ("text", "sure"),
    [
        ("t,PruneCalled\n", 90),
        ('"time","TcpExtTCPWinProbe"\n', 90),
        ("\nepoch,RetransSegs\n1,2\n", 90),
        ("t,cwnd,rtt\n", 0),
        ("t\n", 0),
        ("PruneCalled,t\n", 0),
        ("", 0),
    ],
)
def test_recognised_by_a_time_and_a_counter(text: str, sure: int) -> None:
    assert recognise(text.splitlines()) == sure


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text() | st.from_regex(r"(t,(PruneCalled|A|B)(,C)?\n)?([0-9.,x-]{0,30}\n){0,8}", fullmatch=True))
def test_no_text_raises(text: str) -> None:
    samples, unknown = read(text)
    recognise(text.splitlines())
    assert len(samples) + unknown.count <= len(text)


def test_each_table_of_the_lab_is_read_whole() -> None:
    files = sorted(LAB_RUNS.glob("*/nstat_*.csv"))
    assert len(files) >= 40
    for file in files:
        text = file.read_text(encoding="utf8")
        samples, unknown = read(text)
        assert unknown == Unknown(), file
        rows = list(csv.DictReader(text.splitlines()))
        assert [sample.time_ns for sample in samples] == [int(Decimal(row["t"]) * 10**9) for row in rows], file
        assert [dict(sample.values) for sample in samples] == [
            {
                ("Tcp" if name == "RetransSegs" else "TcpExt") + name: int(count)
                for name, count in row.items()
                if name != "t"
            }
            for row in rows
        ], file
        assert recognise(text.splitlines()[:200]) == 90
