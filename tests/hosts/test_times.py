"""Timestamps in all common forms. 1795288970 is 2026-11-21 19:22:50 UTC, a Saturday."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from cases import all_cases
from hypothesis import given
from hypothesis import strategies as st

from tcpwin.hosts.lines import Lines
from tcpwin.hosts.times import MAX_HELD_CHARACTERS, Stamp, Stamps, StampStyle, find_style

SECOND = 1_000_000_000
NOW = 1795288970 * SECOND
HOUR = 3600 * SECOND
NO_ZONE = "the times name no time zone: they are read as UTC"


def read(text: str, **options: object) -> tuple[list[tuple[str, int | None, int]], Stamps]:
    """Return each remaining line with its time and block, in the text's style."""
    raw = text.splitlines(keepends=True)
    stamps = Stamps(style=find_style(raw), **options)  # type: ignore[arg-type]
    lines = Lines(stamps.ahead(raw), stamps=stamps)
    return [(line, lines.time_ns, lines.block) for line in lines], stamps


@all_cases(
    ("line", "time_ns"),
    [
        ("### 1795288970", NOW),
        ("### 1795288970.336046", NOW + 336_046_000),
        ("###1795288970.5  ", NOW + 500_000_000),
        ("Time: 1795288970.336046123", NOW + 336_046_123),
        ("### 1795288970336", NOW + 336_000_000),  # date +%s%3N
        ("### 1795288970336046", NOW + 336_046_000),
        ("### 1795288970336046123", NOW + 336_046_123),  # date +%s%N
        ("Time: Sat, 21 Nov 2026 19:22:50 GMT", NOW),
        ("Time:2026-11-21T19:22:50Z", NOW),
        ("### Sat Nov 21 19:22:50 UTC 2026", NOW),
        ("###  Sat Nov 21 07:22:50 PM UTC 2026  ", NOW),
        ("### 2026-11-21T19:22:50Z", NOW),
        ("###2026-11-21 20:22:50.5+01:00", NOW + 500_000_000),
        ("## 2026-11-21T19:22:50Z", NOW),
        ("## 1795288970.336046", NOW + 336_046_000),
        ("# 1795288970.336046123", NOW + 336_046_123),
        ("# Sat Nov 21 19:22:50 UTC 2026", NOW),
        ("### 7289654399.999999999", 7289654400 * SECOND - 1),  # The last nanosecond of 2200.
        ("Sat Nov 21 19:22:50 UTC 2026", NOW),
        ("Sat Nov  7 19:22:50 UTC 2026", NOW - 14 * 24 * HOUR),
        ("Sat Nov 21 07:22:50 PM UTC 2026", NOW),
        ("Sat 21 Nov 2026 07:22:50 PM UTC", NOW),
        ("Sat 21 Nov 2026 12:22:50 AM UTC", NOW - 19 * HOUR),
        ("Sat 21 Nov 2026 12:22:50 PM UTC", NOW - 7 * HOUR),
        ("Sat, 21 Nov 2026 19:22:50 +0000", NOW),
        ("Sat, 21 Nov 2026 21:22:50 +0200", NOW),
        ("Sat Nov 21 14:22:50 EST 2026", NOW),
        ("Sat Nov 21 20:22:50 CET 2026", NOW),
        ("Sat Nov 21 21:22:50 CEST 2026", NOW),
        ("Sun Nov 22 04:22:50 JST 2026", NOW),
        ("Sun Nov 22 04:52:50 ACST 2026", NOW),
        ("Sat Nov 21 22:22:50 +03 2026", NOW),
        ("Sun Nov 22 00:52:50 +0530 2026", NOW),
        ("2026-11-21T19:22:50+00:00", NOW),
        ("2026-11-21T19:22:50Z", NOW),
        ("2026-11-21T15:52:50,123456789-03:30", NOW + 123_456_789),
        ("2026-11-21 20:22:50.5+01:00", NOW + 500_000_000),
        ("2026-11-21 19:22:50 UTC", NOW),
        ("2016-12-31T23:59:60Z", 1483228800 * SECOND),  # A leap second is the start of the next day.
    ],
)
def test_a_line_that_is_a_time(line: str, time_ns: int) -> None:
    stamps = Stamps()
    assert stamps.take(line) == Stamp(time_ns, None, is_new_block=True)
    assert stamps.notes == set()


@all_cases(
    "line",
    [
        "Sat Nov 21 19:22:50 2026",
        "2026-11-21 19:22:50",
        "Saturday, November 21, 2026 7:22:50 PM",
        "Every 1.0s: ss -tmi                    host: Sat Nov 21 19:22:50 2026",
        "Every 0,5s: ss -tmi                    host: Sat 21 Nov 2026 07:22:50 PM",
        "Every 2.0s: nstat -az                       2026-11-21 19:22:50",
    ],
)
def test_a_time_without_a_zone_is_in_the_zone_given(line: str) -> None:
    stamps = Stamps()
    assert stamps.take(line) == Stamp(NOW, None, is_new_block=True)
    assert stamps.notes == {NO_ZONE}
    east = Stamps(zone=timezone(timedelta(hours=9)))
    assert east.take(line) == Stamp(NOW - 9 * HOUR, None, is_new_block=True)
    assert east.notes == {"the times name no time zone: they are read as UTC+09:00"}


def test_a_zone_with_summer_time() -> None:
    stamps = Stamps(zone=ZoneInfo("Europe/Berlin"))
    winter, summer = stamps.take("2026-11-21 20:22:50"), stamps.take("2026-07-01 02:00:00")
    assert winter == Stamp(NOW, None, is_new_block=True)
    assert summer == Stamp(int(datetime(2026, 7, 1, tzinfo=UTC).timestamp()) * SECOND, None, is_new_block=True)


def test_a_zone_of_two_meanings_or_none_that_is_known_is_noted() -> None:
    stamps = Stamps(zone=timezone(timedelta(hours=1)))
    assert stamps.take("Sat Nov 21 13:22:50 CST 2026") == Stamp(NOW, None, is_new_block=True)
    assert stamps.take("Sat Nov 21 20:22:50 IST 2026") == Stamp(NOW, None, is_new_block=True)
    assert stamps.notes == {
        "CST is read as US Central time, 6 hours behind UTC; in China it means another zone",
        "the time zone IST is unknown: times are read as UTC+01:00",
    }


@all_cases(
    "line",
    [
        "",
        "1795288970",
        "1795288970.336046",
        "1795226485.336046,0,0",
        "IpInReceives                    4218               0.0",
        "net.ipv4.tcp_mem = 1732217370 1 2",
        "ESTAB 0 0 10.9.1.1:5201 10.9.2.2:36984",
        "Sat Nov 31 19:22:50 UTC 2026",
        "Sat Nov 21 25:22:50 UTC 2026",
        "Sat 21 Nov 2026 13:22:50 PM UTC",
        "2026-13-21T19:22:50Z",
        "2026-11-21 19:22:50 ESTABLISHED",
        "### 12345",
        "### 179528897033",
        "### tcp",
        "### 7289654400",
        "### 9999999999999999999",  # More than 64 bits.
        "### 0000000001",
        "1970-12-31T23:59:59Z",
        "#kernel",
        "#1234.5 sampling_interval=5 time_const=60",
        "#1795288970",
        "# 1795288970 4096",
        "# net.ipv4.tcp_rmem = 4096 131072 6291456",
        "#### 1795288970",
        "### 1795288970.Nx",
        "Time: 1795288970, 5",
        "00:00:01 ESTAB 0 0",
        "Time: later",
        "Every second counts",
        "----",
        "--- a/tcp.c",
        "Time: " + "1" * 5000,
        "TcpExt: SyncookiesSent",
        "1" * 5000,
        "٤٤٤٤٤٤٤٤٤٤",
    ],
)
def test_a_line_without_a_time(line: str) -> None:
    assert Stamps().take(line) is None


def test_blocks_begin_at_times_and_separators_and_not_twice() -> None:
    text = "Time: 1795288970\na\n---\nTime: 1795288971\nb\n### 1795288972\n### 1795288973\nd\n--- \ne\n"
    found, _ = read(text)
    assert found[:3] == [("a", NOW, 1), ("b", NOW + SECOND, 2), ("d", NOW + 3 * SECOND, 4)]
    assert (found[3][0], found[3][2]) == ("e", 5)
    stamps = Stamps()
    stamps.take("### 1795288970")
    stamps.take("a")
    assert stamps.take("---") == Stamp(None, None, is_new_block=True)


def test_flent_writes_the_time_behind_its_sample() -> None:
    """misc/ss_iterate.sh: ss; date '+Time: %s.%N'; echo '---'."""
    text = "State\nESTAB a\n\nTime: 1795288970.250\n---\n\nState\n\nTime: 1795288971.250\n---\n"
    assert find_style(text.splitlines()) == StampStyle(is_trailing=True)
    found, _ = read(text)
    first, second = NOW + 250_000_000, NOW + SECOND + 250_000_000
    assert [each for each in found if each[0]] == [("State", first, 1), ("ESTAB a", first, 1), ("State", second, 2)]


BEHIND = "a time follows each sample, with no separator in between: it applies to the lines before it"


@pytest.mark.parametrize(
    "texts",
    [
        ("Time: 1795288970.250", "Time: 1795288971.250"),
        ("### 1795288970.250", "### 1795288971.250"),
        ("2026-11-21T19:22:50,25Z", "2026-11-21T19:22:51,25Z"),
    ],
)
def test_a_time_behind_each_sample_without_a_separator(texts: tuple[str, str]) -> None:
    """While ss -tmi; echo "Time: $(date +%s.%N)"; do sleep 1; done."""
    raw = ["State", "ESTAB a", "", texts[0], "State", "ESTAB a", "ESTAB b", texts[1], ""]
    assert find_style(raw) == StampStyle(is_trailing=True, is_border=True)
    found, stamps = read("\n".join(raw))
    first, second = NOW + 250_000_000, NOW + SECOND + 250_000_000
    assert [each for each in found if each[0]] == [
        ("State", first, 1),
        ("ESTAB a", first, 1),
        ("State", second, 2),
        ("ESTAB a", second, 2),
        ("ESTAB b", second, 2),
    ]
    assert stamps.notes == {BEHIND}


def test_one_sample_and_the_time_behind_it() -> None:
    found, stamps = read("State\nESTAB a\n### 1795288970\n")
    assert found == [("State", NOW, 1), ("ESTAB a", NOW, 1)]
    assert stamps.notes == {BEHIND}


@pytest.mark.parametrize(
    "raw",
    [
        # A remark, then times before their samples, ending after a time.
        ["Dear all", "### 1795288970", "State", "ESTAB a", "ESTAB b", "### 1795288971"],
        ["$ sh loop.sh", "### 1795288970", "State", "### 1795288971"],
        ["### 1795288970", "State", "### 1795288971"],
    ],
)
def test_a_time_before_each_sample_stays_so(raw: list[str]) -> None:
    assert find_style(raw) == StampStyle()


def test_no_time_before_the_first_sample_and_none_behind_the_last_is_noted() -> None:
    text = "State\nESTAB a\n### 1795288970\nState\nESTAB b\n"
    assert find_style(text.splitlines()) == StampStyle(is_unsure=True)
    found, stamps = read(text)
    assert found == [("State", None, 0), ("ESTAB a", None, 0), ("State", NOW, 1), ("ESTAB b", NOW, 1)]
    assert stamps.notes == {"no time precedes the first sample or follows the last: each applies to the lines after it"}


def test_the_order_at_a_files_start_decides() -> None:
    raw = ["State", "ESTAB a", "### 1795288970", "State", "ESTAB a"]
    assert find_style(raw, is_cut=True) == StampStyle(is_trailing=True, is_border=True)
    assert find_style(["kernel", *raw[2:], "ESTAB b"], is_cut=True) == StampStyle()
    assert find_style(raw[2:], is_cut=True) == StampStyle()


def test_a_first_sample_longer_than_the_start_of_the_file_has_no_time_and_the_next_have_theirs() -> None:
    raw = ["State", "ESTAB a", "### 1795288970", "State", "### 1795288971", "State"]
    style = find_style(raw[:2], is_cut=True)
    assert style == StampStyle(is_trailing=True, is_border=True, is_late=True)
    stamps = Stamps(style=style)
    lines = Lines(stamps.ahead(raw), stamps=stamps)
    assert [(line, lines.time_ns, lines.block) for line in lines] == [
        ("State", None, 0),
        ("ESTAB a", None, 0),
        ("State", NOW + SECOND, 2),
        ("State", None, 3),
    ]
    assert stamps.notes == {BEHIND, "the first sample has no time, because its time follows too far after it"}


def test_a_file_without_times_is_read_as_it_comes_and_its_separators_hold() -> None:
    stamps = Stamps(style=StampStyle(is_trailing=True, is_border=True, is_late=True))
    given_lines = iter(["a", "---", "b", "c"])
    lines = Lines(stamps.ahead(given_lines), stamps=stamps)
    taken = iter(lines)
    assert [(next(taken), lines.block), (next(taken), lines.block)] == [("a", 0), ("b", 1)]
    assert list(given_lines) == ["c"]  # It was not read ahead.
    assert stamps.notes == set()


@all_cases("end", [".", ".N", ".%N", "N", "%N", ".3N", ".%3N"])
@all_cases("mark", ["### ", "# ", "Time: ", ""])
def test_a_date_that_knows_no_nanoseconds(mark: str, end: str) -> None:
    """BusyBox and macOS omit %N or print part of it."""
    text = f"{mark}1795288970{end}\na\n{mark}1795288971{end}\nb\n"
    found, stamps = read(text)
    assert found == [("a", NOW, 1), ("b", NOW + SECOND, 2)]
    assert stamps.notes == {"times are whole seconds: the `date` of that host has no %N"}


@pytest.mark.parametrize("digits", ["336", "336046", "336046123"])
def test_a_bare_number_of_milli_micro_or_nanoseconds(digits: str) -> None:
    """date +%s%3N, +%s%6N, +%s%N."""
    text = f"1795288970{digits}\na\n1795288971\n1795288971{digits}\nb\n"
    assert find_style(text.splitlines()) == StampStyle(is_bare=True)
    part = int(digits.ljust(9, "0"))
    assert read(text)[0] == [("a", NOW + part, 1), ("1795288971", NOW + part, 1), ("b", NOW + SECOND + part, 2)]


def test_hours_minutes_and_seconds_of_ts_give_the_order_only() -> None:
    """From ts -s and ts -i, and with '%.S'."""
    for part in ("", ".123456"):
        text = f"00:00:00{part} State\n00:00:00{part} ESTAB a\n00:00:01{part} \t skmem:(r0)\n00:00:01{part}\n"
        assert find_style(text.splitlines()) == StampStyle(prefix="clock")
        found, stamps = read(text)
        assert found == [("State", None, 0), ("ESTAB a", None, 0), ("\t skmem:(r0)", None, 0), ("", None, 0)]
        assert stamps.notes == {"the times before each line have no date, or are durations: only the order is known"}


def test_a_time_behind_a_clock_holds() -> None:
    found, _ = read("00:00:00 ### 1795288970\n00:00:00 a\n00:00:01 ### 1795288971\n00:00:01 b\n")
    assert found == [("a", NOW, 1), ("b", NOW + SECOND, 2)]


@pytest.mark.parametrize("prefix", ["1795288970", "2026-11-21T19:22:50Z", "Sat Nov 21 19:22:50 2026", "00:00:01"])
def test_a_tab_behind_a_prefix(prefix: str) -> None:
    time_ns = None if prefix == "00:00:01" else NOW
    found, _ = read(f"{prefix}\tState\n{prefix}\t\t skmem:(r0)\n")
    assert found == [("State", time_ns, 0), ("\t skmem:(r0)", time_ns, 0)]


def test_a_sample_that_was_cut_before_its_time_has_none() -> None:
    raw = ["a", "Time: 1795288970", "---", "b"]
    stamps = Stamps(style=find_style(raw))
    assert [stamps.take(line) for line in stamps.ahead(raw)] == [
        Stamp(NOW, "a", is_new_block=True),
        Stamp(None, None, is_new_block=False),
        Stamp(None, None, is_new_block=False),
        Stamp(None, "b", is_new_block=True),
    ]


def test_line_numbers_are_those_of_the_file_where_times_follow() -> None:
    raw = ["a\n", "Time: 1795288970\n", "---\n", "b\n", "Time: 1795288971\n", "---\n"]
    stamps = Stamps(style=find_style(raw))
    lines = Lines(stamps.ahead(raw), stamps=stamps)
    assert [(line, lines.number) for line in lines] == [("a", 1), ("b", 4)]


def test_a_sample_too_long_for_its_time_is_given_without() -> None:
    stamps = Stamps(style=StampStyle(is_trailing=True))
    raw = ["x" * (1 << 20)] * (MAX_HELD_CHARACTERS // (1 << 20) + 2)
    assert sum(1 for _ in stamps.ahead(raw)) == len(raw)
    assert stamps.notes == {"a sample is so long that the time after it was not found"}


@all_cases(
    ("prefix", "kind", "time_ns", "notes"),
    [
        ("1795288970.336046 ", "epoch", NOW + 336_046_000, set()),  # ts '%.s'
        ("1795288970 ", "epoch", NOW, set()),  # ts %s
        ("2026-11-21T19:22:50Z ", "iso", NOW, set()),
        ("2026-11-21T20:22:50+01:00 ", "iso", NOW, set()),
        ("2026-11-21 20:22:50 +0100 ", "iso", NOW, set()),
        ("2026-11-21 19:22:50.336046 ", "iso", NOW + 336_046_000, {NO_ZONE}),  # ts '%Y-%m-%d %H:%M:%.S'
        ("[2026/11/21 19:22:50] ", "bracket", NOW, {NO_ZONE}),  # scripts that loop over `ss`
        ("[2026-11-21 19:22:50] ", "bracket", NOW, {NO_ZONE}),  # ts '[%Y-%m-%d %H:%M:%S]'
        ("Sat Nov 21 19:22:50 2026 ", "ctime", NOW, {NO_ZONE}),  # iperf3 --timestamps
    ],
)
def test_a_prefix_of_every_line(prefix: str, kind: str, time_ns: int, notes: set[str]) -> None:
    text = f"{prefix}State Recv-Q\n{prefix}ESTAB 0 0\n{prefix}\t skmem:(r0)\n{prefix}\n"
    assert find_style(text.splitlines()) == StampStyle(prefix=kind)
    found, stamps = read(text)
    assert found == [
        ("State Recv-Q", time_ns, 0),
        ("ESTAB 0 0", time_ns, 0),
        ("\t skmem:(r0)", time_ns, 0),
        ("", time_ns, 0),
    ]
    assert stamps.notes == notes


@all_cases(
    ("prefix", "kind", "time_ns"),
    [
        # journalctl -o short-precise, short-iso, short-iso-precise, short-unix; the third is also rsyslog's.
        ("Nov 21 19:22:50.336046 ", "syslog", NOW + 336_046_000),
        ("2026-11-21T19:22:50+0000 ", "iso", NOW),
        ("2026-11-21T19:22:50.336046+00:00 ", "iso", NOW + 336_046_000),
        ("1795288970.336046 ", "epoch", NOW + 336_046_000),
        ("Nov 21 19:22:50 ", "syslog", NOW),  # rsyslog 8.2302, RSYSLOG_TraditionalFileFormat
    ],
)
@all_cases("tab", ["\t", "#011"])
@all_cases("head", ["", "-- Journal begins at Sat 2026-11-21 19:00:00 UTC. --\n"])
def test_host_and_program_of_a_log_are_removed(prefix: str, kind: str, time_ns: int, tab: str, head: str) -> None:
    text = (
        f"{head}{prefix}web-1.example ss[2399]: State Recv-Q\n{prefix}web-1.example ss[2401]: ESTAB 0 0\n"
        f"{prefix}web-1.example ss[2402]: {tab} skmem:(r0) cubic wscale:7,7\n{prefix}web-1.example ss:\n"
    )
    assert find_style(text.splitlines()) == StampStyle(prefix=kind, origin="logged")
    found, _ = read(text, year=2026)
    assert found[-4:] == [
        ("State Recv-Q", time_ns, 0),
        ("ESTAB 0 0", time_ns, 0),
        ("\t skmem:(r0) cubic wscale:7,7", time_ns, 0),
        ("", time_ns, 0),
    ]


def test_words_that_look_like_a_log_are_text_where_one_line_is_none() -> None:
    """A line of `ss` also has a word, a space and a colon."""
    text = "1795288970 ESTAB 0 0 a:1 b:2\n1795288970 cubic wscale:7,7\n"
    assert find_style(text.splitlines()) == StampStyle(prefix="epoch")
    assert [line for line, _, _ in read(text)[0]] == ["ESTAB 0 0 a:1 b:2", "cubic wscale:7,7"]
    two_hosts = "1795288970 a ss[1]: x\n1795288970 b ss[1]: y\n"
    assert find_style(two_hosts.splitlines()).origin is None


@pytest.mark.parametrize(
    ("origin", "head"),
    [
        ("host", "Nov 21 19:22:50 web-1"),
        ("host", "2026-11-21T19:22:50.000000+00:00 web-1.example"),
        ("program", "Nov 21 19:22:50 ss[2399]:"),
        ("program", "2026-11-21T19:22:50+0000 ss[2399]:"),
    ],
)
def test_a_host_or_a_program_alone_is_taken_off(origin: str, head: str) -> None:
    """From `journalctl --no-hostname`, and from programs that write only the host."""
    text = f"{head} State Recv-Q\n{head} ESTAB 0 0\n{head} \t cubic wscale:7,7\n"
    assert find_style(text.splitlines()).origin == origin
    found, _ = read(text, year=2026)
    lines = [("State Recv-Q", NOW, 0), ("ESTAB 0 0", NOW, 0), ("\t cubic wscale:7,7", NOW, 0)]
    assert found == lines


def test_a_word_shared_by_all_lines_is_not_a_host() -> None:
    """Lines of `ss -HO` and `ss -tuH` begin with the same state or protocol."""
    for word in ("ESTAB", "tcp"):
        text = f"1795288970 {word} 0 0 a:1 b:2\n1795288970 {word}  0 0 a:1 b:3\n"
        assert find_style(text.splitlines()).origin is None


def test_the_default_of_ts_has_no_year() -> None:
    """The latest year in which the first time precedes the file's modification."""
    text = "Nov 21 19:22:50 a\nNov 21 19:22:51 b\n"
    note = "the times have no year: 2026 is assumed, from when the file was written"
    for latest in (datetime(2026, 11, 21, 20, tzinfo=UTC), datetime(2027, 3, 1, tzinfo=UTC)):
        found, stamps = read(text, latest=latest)
        assert found == [("a", NOW, 0), ("b", NOW + SECOND, 0)]
        assert stamps.notes == {note, NO_ZONE}
    assert read(text, year=2026)[0] == [("a", NOW, 0), ("b", NOW + SECOND, 0)]


def test_a_year_ends_while_the_file_is_written() -> None:
    text = "Dec 31 23:59:59 a\nJan  1 00:00:00 b\nJan  1 00:00:01 c\n"
    start = int(datetime(2027, 1, 1, tzinfo=UTC).timestamp()) * SECOND
    for options in ({"year": 2026}, {"latest": datetime(2027, 1, 1, tzinfo=UTC)}):
        found, _ = read(text, **options)
        assert found == [("a", start - SECOND, 0), ("b", start, 0), ("c", start + SECOND, 0)]


def test_the_29th_of_february_is_of_a_leap_year() -> None:
    found, _ = read("Feb 29 12:00:00 a\n", latest=datetime(2027, 3, 1, tzinfo=UTC))
    assert found == [("a", int(datetime(2024, 2, 29, 12, tzinfo=UTC).timestamp()) * SECOND, 0)]


def test_a_stamp_behind_a_prefix_begins_a_sample() -> None:
    """(date +'### %s'; ss -t) | ts '%.s'."""
    found, _ = read("1795288970.1 ### 1795288970\n1795288970.2 a\n1795288971.1 ### 1795288971\n1795288971.2 b\n")
    assert found == [("a", NOW + 200_000_000, 1), ("b", NOW + SECOND + 200_000_000, 2)]


def test_one_line_without_a_prefix_means_that_none_is_one() -> None:
    text = "Nov 21 19:22:50 is a day\nNov 22 was another\n"
    assert find_style(text.splitlines()) == StampStyle()
    assert read(text)[0] == [("Nov 21 19:22:50 is a day", None, 0), ("Nov 22 was another", None, 0)]


def test_a_bare_number_is_a_time_where_the_file_begins_with_one() -> None:
    """date +%s.%N; a number of another form, earlier, or of another month is data."""
    text = "1795288970.25\na\n1732217370\n1795288971.25\nb\n1.5\n1795288970.5\n1999999999.5\n"
    assert find_style(text.splitlines()) == StampStyle(is_bare=True)
    found, _ = read(text)
    first, second = NOW + 250_000_000, NOW + SECOND + 250_000_000
    assert found == [
        ("a", first, 1),
        ("1732217370", first, 1),
        ("b", second, 2),
        ("1.5", second, 2),
        ("1795288970.5", second, 2),
        ("1999999999.5", second, 2),
    ]


@pytest.mark.parametrize(
    "text", ["a\n1795288970\nb\n", "1795288970\n4096\n", "1795288970\n", "t,a\n1795226485.336046,0\n"]
)
def test_a_bare_number_is_data_in_other_files(text: str) -> None:
    assert find_style(text.splitlines()) == StampStyle()
    assert [line for line, _, _ in read(text)[0]] == text.splitlines()


@given(st.integers(31_536_000 * SECOND, 4_000_000_000 * SECOND), st.sampled_from([-570, 0, 60, 345, 765]))
def test_iso_times_come_back_from_what_python_writes(time_ns: int, minutes: int) -> None:
    zone = timezone(timedelta(minutes=minutes))
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time_ns // 1000)
    text = moment.astimezone(zone).isoformat(timespec="microseconds")
    assert Stamps().take(text) == Stamp(time_ns // 1000 * 1000, None, is_new_block=True)


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=60), max_size=20))
def test_lines_of_data_come_out_as_they_went_in(texts: list[str]) -> None:
    data = [f"x{text}" for text in texts]
    borders = [StampStyle(is_trailing=True, is_border=True, is_late=is_late) for is_late in (False, True)]
    for style in (StampStyle(), StampStyle(is_bare=True), StampStyle(is_trailing=True), *borders):
        stamps = Stamps(style=style)
        assert list(Lines(stamps.ahead(data), stamps=stamps)) == data
    with_prefix = [f"Nov 21 19:22:50 {line}" for line in data]
    assert list(Lines(with_prefix, stamps=Stamps(style=StampStyle(prefix="syslog"), year=2026))) == data


@given(st.lists(st.text(st.sampled_from("#-:. ETime:0123456789SatNovFeb,+Z[]"), max_size=40), max_size=20))
def test_lines_that_look_like_times_never_raise(lines: list[str]) -> None:
    styles = [StampStyle(prefix=prefix) for prefix in (None, "epoch", "syslog", "iso", "bracket", "ctime", "clock")]
    found = (find_style(lines), find_style(lines, is_cut=True))
    logged = [StampStyle(prefix=prefix, origin="logged") for prefix in ("syslog", "iso")]
    for style in (*styles, *logged, StampStyle(is_bare=True), StampStyle(is_trailing=True), *found):
        stamps = Stamps(style=style)
        assert len(list(Lines(stamps.ahead(lines), stamps=stamps))) <= len(lines)
