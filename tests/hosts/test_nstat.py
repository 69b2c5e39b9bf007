"""nstat: text and JSON; increments are distinguished from counts since boot only if the numbers show it."""

from __future__ import annotations

import re
from pathlib import Path

from cases import all_cases
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import LAB_RUNS

from tcpwin.hosts import CounterSample, UnknownLine
from tcpwin.hosts.formats.nstat import HELD_SAMPLES, MAX_NAMES, recognise
from tcpwin.hosts.formats.nstat import read as read_samples
from tcpwin.hosts.lines import Lines, Unknown

TRUTH = Path(__file__).parent / "truth" / "nstat"


def read(text: str) -> tuple[list[CounterSample], Unknown]:
    lines = Lines(text.splitlines(keepends=True))
    return list(read_samples(lines)), lines.unknown


def truth(name: str) -> str:
    return (TRUTH / name).read_text(encoding="utf8")


def test_increments_with_stamps_and_an_overflow() -> None:
    samples, unknown = read(truth("increments.txt"))
    assert samples == [
        CounterSample(
            time_ns=1_700_000_000_250_000_000,
            line=2,
            values={"IpInReceives": 12, "TcpInSegs": 11, "TcpExtTCPRcvCoalesce": 0, "IpExtInOctets": 17004},
            is_increment=True,
            rates={},
        ),
        CounterSample(
            time_ns=1_700_000_001_250_000_000,
            line=8,
            values={"IpInReceives": 3, "TcpInSegs": 3, "TcpExtTCPRcvCoalesce": 0, "IpExtInOctets": 156},
            is_increment=True,
            rates={},
            resets=frozenset({"TcpExtTCPRcvCoalesce"}),
        ),
    ]
    assert unknown == Unknown()


def test_counts_since_boot_are_known_by_ten_counts_that_did_not_fall() -> None:
    samples, unknown = read(truth("since_boot.txt"))
    first = {
        "IpInReceives": 7001,
        "IpInDelivers": 7000,
        "IpOutRequests": 6400,
        "TcpActiveOpens": 31,
        "TcpInSegs": 6990,
        "TcpOutSegs": 6388,
        "TcpRetransSegs": 9,
        "TcpExtPruneCalled": 0,
        "TcpExtTCPOrigDataSent": 590,
        "IpExtInOctets": 18446744073709551615,
    }
    second = {**first, "IpInReceives": 7002, "IpInDelivers": 7001, "TcpInSegs": 6991, "TcpExtPruneCalled": 2}
    # Nine non-zero counts: too few.
    assert samples == [CounterSample(None, 1, first, None, {}), CounterSample(None, 12, second, None, {})]
    assert unknown == Unknown()
    samples, _ = read(truth("since_boot.txt") + "#kernel\nTcpInSegs 6991 0.0\n")
    assert [sample.is_increment for sample in samples] == [True, True, True]  # Missing names were 0.
    samples, _ = read(truth("since_boot.txt") + "#kernel\nTcpInSegs 6991 0.0\nTcpInErrs 0 0.0\n")
    assert [sample.is_increment for sample in samples] == [False, False, False]


def test_rates_of_the_daemon_and_its_header() -> None:
    samples, unknown = read(truth("daemon.txt"))
    assert samples == [
        CounterSample(
            None,
            1,
            {"TcpInSegs": 987654, "TcpRetransSegs": 12, "TcpExtTCPTimeouts": 1, "TcpExtPruneCalled": 4},
            is_increment=None,
            rates={"TcpInSegs": 812.3, "TcpRetransSegs": 0.1, "TcpExtTCPTimeouts": -0.5},
        )
    ]
    assert unknown == Unknown()


def test_json_compact_pretty_and_of_old_versions_without_outer_braces() -> None:
    samples, unknown = read(truth("json.txt"))
    assert samples == [
        CounterSample(1_700_000_000_000_000_000, 2, {"TcpInSegs": 11501, "TcpExtPruneCalled": 0}, None, {}),
        CounterSample(1_700_000_001_000_000_000, 5, {"TcpInSegs": 11502, "TcpExtPruneCalled": 1}, None, {}),
        CounterSample(1_700_000_002_000_000_000, 11, {"TcpInSegs": 11502, "TcpExtPruneCalled": 1}, None, {}),
        CounterSample(1_700_000_003_000_000_000, 14, {}, None, {}),
    ]
    assert unknown == Unknown()


def test_rows_without_a_header_begin_a_sample_where_a_name_repeats() -> None:
    samples, unknown = read(truth("picked.txt"))
    assert samples == [
        CounterSample(None, 1, {"TcpRetransSegs": 5, "TcpExtPruneCalled": 2}, None, {}),
        CounterSample(None, 3, {"TcpRetransSegs": 6, "TcpExtPruneCalled": 2}, None, {}),
    ]
    assert unknown == Unknown()


def test_a_notice_of_the_history_makes_the_next_run_count_since_boot() -> None:
    samples, unknown = read(truth("aged_out.txt"))
    assert samples == [
        CounterSample(None, 3, {"TcpInSegs": 900}, is_increment=False, rates={}),
        CounterSample(None, 5, {"TcpInSegs": 4}, is_increment=True, rates={}),
        CounterSample(None, 7, {}, is_increment=True, rates={}),
    ]
    assert unknown == Unknown()


def test_broken_rows_are_kept_as_unknown_and_the_rest_is_read() -> None:
    samples, unknown = read(truth("broken.txt"))
    assert samples == [
        CounterSample(
            None, 1, {"TcpInSegs": 5, "TcpOutRsts": 3, "TcpExtAVeryLongNameOfThirtySixCharacters": 12}, None, {}
        )
    ]
    assert unknown.count == 4
    assert unknown.first == [
        UnknownLine(3, "TcpOutSegs                      -5                 0.0"),
        UnknownLine(4, "TcpRetransSegs                  18446744073709551616  0.0"),
        UnknownLine(5, "Tcp Out Segs                    7                  0.0"),
        UnknownLine(9, "TcpInErrs                       1                  0.0 (sic)"),
    ]


@all_cases(
    ("text", "kinds"),
    [
        ("#kernel\nTcpInSegs 5 0.0\n", [None]),
        ("#kernel\n#kernel\n", [None, None]),
        # One of three falls, and three counts do not: either is possible.
        ("".join(f"#kernel\nTcpInSegs {i} 0.0\n" for i in (5, 6, 1, 2, 3)), [None] * 5),
        # A pair in which a count fell: a restart would be rarer.
        ("#kernel\nTcpInSegs 5 0.0\n#kernel\nTcpInSegs 4 0.0\n", [True, True]),
        # Ten counts stayed or grew.
        ("".join(f"#kernel\nTcpInSegs {5 + i // 2} 0.0\n" for i in range(11)), [None] * 11),
        ("".join(f"#kernel\nTcpInSegs {5 + i} 0.0\nIpInReceives 7 0.0\n" for i in range(6)), [False] * 6),
        # One restart among many steps without a fall.
        ("".join(f"#kernel\nTcpInSegs {i % 5 + 1} 0.0\nIpInReceives 7 0.0\n" for i in range(10)), [False] * 10),
        # A current number may fall.
        ("#kernel\nMPTcpExtMPCurrEstab 5 0.0\n#kernel\nMPTcpExtMPCurrEstab 4 0.0\n", [None, None]),
        # A mark after the buffered samples is still noticed.
        ("#kernel\nTcpInSegs 5 0.0\n" * 9 + "#kernel\nTcpInSegs 0 0.0 (overflow)\n", [None] * 9 + [True]),
    ],
)
def test_numbers_reveal_increments_or_counts_since_boot(text: str, kinds: list[bool | None]) -> None:
    samples, unknown = read(text)
    assert [sample.is_increment for sample in samples] == kinds
    assert unknown == Unknown()


def test_names_of_a_sample_are_bounded() -> None:
    text = "#kernel\n" + "".join(f"Tcp{i:05}x 1 0.0\n" for i in range(MAX_NAMES + 3))
    samples, unknown = read(text)
    assert [len(sample.values) for sample in samples] == [MAX_NAMES]
    assert unknown.count == 3


def test_only_the_first_samples_are_held_back() -> None:
    lines = Lines(f"TcpInSegs {i} 0.0" for i in range(1, 100))
    next(read_samples(lines))
    assert lines.number == HELD_SAMPLES + 1


@all_cases(
    ("text", "sure"),
    [
        ("#kernel\nTcpInSegs 5 0.0\n", 95),
        ("#kernel\n", 95),
        ("#1234.5 sampling_interval=5 time_const=60\nTcpInSegs 5 0.1\nTcpOutSegs 5 0.1\n", 80),
        ("TcpInSegs 5 0.0\n", 80),
        ('{"kernel":{"TcpInSegs":5}}\n', 90),
        ('"kernel":{"TcpInSegs":5}\n', 90),
        ('{\n    "kernel": {\n        "TcpInSegs": 5,\n        "TcpOutSegs": 7,\n', 80),
        ('{\n    "kernel": {\n        "TcpInSegs": 5\n    }\n}\n', 80),
        ('{\n    "kernel": {\n        "TcpInSegs": 5,\n        "TcpOutSegs": 7\n    }\n}\n', 80),
        ('{\n    "kernel": {\n    }\n}\n', 0),
        ('{\n    "a": {\n        "b": 5,\n        "c": 6,\n        "TcpOutSegs": 7\n    }\n}\n', 0),
        ('{"type":"counters","values":{"TcpInSegs":5}}\n', 0),
        ('{\n\t"start":\t{\n\t\t"connected":\t[{\n', 0),
        ("Ip6InReceives                   	12\n", 0),
        ("TcpExt: SyncookiesSent\nTcpExt: 0\n", 0),
        ("tcp ESTAB 0 0 10.0.0.1:1 10.0.0.2:2\n", 0),
        ("", 0),
    ],
)
def test_recognised_by_header_rows_or_names_in_json(text: str, sure: int) -> None:
    assert recognise(text.splitlines()) == sure


NAMES = st.from_regex(r"Tcp(Ext)?[A-Z][A-Za-z]{2,20}", fullmatch=True)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.lists(st.dictionaries(NAMES, st.integers(0, (1 << 64) - 1), min_size=1, max_size=8), max_size=12),
    st.sampled_from(["text", "compact", "pretty"]),
)
def test_text_written_like_nstat_is_read_back(runs: list[dict[str, int]], form: str) -> None:
    text = ""
    for number, run in enumerate(runs):
        text += f"### {1_700_000_000 + number}.5\n"
        if form == "text":
            text += "#kernel\n" + "".join(f"{name:<32}{value:<16}{0.0:6.1f}\n" for name, value in run.items())
        elif form == "compact":
            text += '{"kernel":{' + ",".join(f'"{name}":{value}' for name, value in run.items()) + "}}\n"
        else:
            rows = ",\n".join(f'        "{name}": {value}' for name, value in run.items())
            text += f'{{\n    "kernel": {{\n{rows}\n    }}\n}}\n'
    samples, unknown = read(text)
    assert [(sample.time_ns, sample.values) for sample in samples] == [
        (1_700_000_000_500_000_000 + number * 1_000_000_000, run) for number, run in enumerate(runs)
    ]
    assert unknown == Unknown()


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text() | st.from_regex(r'([#{}"A-Za-z0-9 :,.()-]{0,30}\n){0,8}', fullmatch=True))
def test_no_text_raises(text: str) -> None:
    samples, unknown = read(text)
    recognise(text.splitlines())
    assert len(samples) + unknown.count <= 2 * len(text)


def test_very_long_lines_are_soon_done() -> None:
    for text in ("A" * 500_000, "1" * 500_000, '"' * 500_000, '{"a":{' + "," * 500_000, "Tcp 1 " + "." * 500_000):
        samples, unknown = read(text)
        assert len(samples) <= 1
        assert unknown.count <= 1


def test_each_file_of_the_lab_is_read_whole() -> None:
    files = sorted(LAB_RUNS.glob("*/nstat_*.txt"))
    assert len(files) >= 80
    for file in files:
        text = file.read_text(encoding="utf8")
        samples, unknown = read(text)
        assert unknown == Unknown(), file
        rows = re.findall(r"^(\w+) +(\d+) +0\.0$", text, re.MULTILINE)
        assert len(rows) == len(text.splitlines()) - 1
        assert samples == [CounterSample(None, 1, {name: int(count) for name, count in rows}, None, {})], file
        assert recognise(text.splitlines()[:200]) == 95
