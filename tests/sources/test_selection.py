"""Filters and spans select the same packets as tcpdump, with their numbers in the file."""

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import dpkt
import pytest
from analysis.bundled import plain_bytes
from cases import all_cases
from cli.command import CAPTURES, KEEP_ALIVE, MANY_SHORT, SLOW_READER, refused, tcpwin
from live import HANG_S
from spread import some_by_day

import tcpwin as library
from tcpwin.sources import Selection, read_moment
from tcpwin.sources.libpcap import compile_filter

ANY = CAPTURES / "wild" / "forwarded-any.pcap.zst"
IPV6 = CAPTURES / "wild" / "http-ipv6.pcap.zst"
LOOPBACK = CAPTURES / "wild" / "iperf3-loopback.pcap.lz4"
HTTP = CAPTURES / "wild" / "http-download.pcapng"
COOKED = CAPTURES / "lab" / "cooked-any.pcap.gz"
COMPARED = (MANY_SHORT, SLOW_READER, KEEP_ALIVE, ANY, IPV6, LOOPBACK, HTTP, COOKED)
FILTERS = (
    "tcp",
    "ip6 or udp",
    "tcp[tcpflags] & (tcp-syn|tcp-fin|tcp-rst) != 0",
    "greater 200",
    "less 80 and not tcp[13] & 2 != 0",
    "tcp port 80 or tcp portrange 5000-50000",
    "ip[2:2] - ((ip[0] & 0xf) << 2) - ((tcp[12] & 0xf0) >> 2) > 0",
    "tcp and ip[8] / 3 > 20 and len % 2 = 0",
    "net 10.0.0.0/8 or net 127.0.0.0/8 or net fe80::/10",
    "src port 443 or dst port 5201",
)
Packets = list[tuple[float, bytes]]


def by_tcpdump(capture: Path, expression: str, folder: Path, tool: Callable[[str], str]) -> Packets:
    given, out = folder / "given", folder / "tcpdump.pcap"
    given.write_bytes(plain_bytes(capture, tool))
    command = [tool("tcpdump"), "-r", str(given), "-w", str(out), expression]
    subprocess.run(command, capture_output=True, check=True, timeout=HANG_S)
    with out.open("rb") as file:
        return list(dpkt.pcap.Reader(file))


def by_tcpwin(capture: Path, expression: str, folder: Path) -> Packets:
    out = folder / "tcpwin.pcapng"
    done = tcpwin("annotate", capture, "--filter", expression, "--json", "-o", out)
    if done.returncode == 3:
        assert b"none was selected" in done.stderr
        return []
    assert (done.returncode, done.stderr) == (0, b"")
    with out.open("rb") as file:
        return list(dpkt.pcapng.Reader(file))


def rows(*arguments: object) -> list[dict[str, str]]:
    done = tcpwin("packets", *arguments)
    assert done.returncode == 0, done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout.decode())))


@pytest.mark.parametrize("capture", some_by_day(COMPARED), ids=lambda path: path.name)
def test_the_packets_that_tcpdump_takes(capture: Path, tmp_path: Path, tool: Callable[[str], str]) -> None:
    taken = 0
    for expression in FILTERS:
        expected = by_tcpdump(capture, expression, tmp_path, tool)
        found = by_tcpwin(capture, expression, tmp_path)
        assert [data for _, data in found] == [data for _, data in expected], expression
        assert [moment for moment, _ in found] == pytest.approx([moment for moment, _ in expected], abs=2e-6)
        taken += bool(expected)
    assert taken >= 3


def test_frames_keep_their_numbers() -> None:
    everything = {row["frame"]: row for row in rows(MANY_SHORT)}
    chosen = rows(MANY_SHORT, "--filter", "src port 8083")
    assert 0 < len(chosen) < len(everything)
    names = ("time_ns", "src", "sport", "dst", "dport", "seq", "ack", "length", "flags", "window_raw")
    for row in chosen:
        assert [row[name] for name in names] == [everything[row["frame"]][name] for name in names]
    assert {row["frame"] for row in chosen} == {frame for frame, row in everything.items() if row["sport"] == "8083"}


def test_one_connection_is_measured_as_among_all() -> None:
    whole = library.analyze(MANY_SHORT)
    for connection in list(whole)[:5]:
        expression = f"host {connection.a.address} and port {connection.a.port}"
        [alone] = library.analyze(MANY_SHORT, filter=expression)
        differ = {"id", "verdict"}
        fields = {name: value for name, value in connection.fields.items() if name not in differ}
        assert {name: value for name, value in alone.fields.items() if name not in differ} == fields
        assert (alone.a_to_b, alone.b_to_a) == (connection.a_to_b, connection.b_to_a)
        # Series, events and segments are read again through the same filter.
        assert alone.events == connection.events
        assert [{**row, "connection": connection.id} for row in alone.segments().rows()] == list(
            connection.segments().rows()
        )


def test_the_number_left_out_is_reported() -> None:
    analysis = library.analyze(MANY_SHORT, filter="port 8083", start=0.1)
    capture = analysis.capture
    assert capture.packets == library.analyze(MANY_SHORT).capture.packets
    assert capture.packets_left_out == capture.packets - capture.segments - capture.not_tcp
    done = tcpwin("analyze", MANY_SHORT, "--filter", "port 8083", "--from", "100ms")
    expected = f"selected: {capture.segments} of them: filter 'port 8083', from 100ms"
    assert expected in done.stdout.decode()
    assert library.analyze(MANY_SHORT).selection is None
    assert str(analysis.selection) == "filter 'port 8083', from 0.1 s"


def test_a_span_selects_the_packets_within_it() -> None:
    everything = rows(SLOW_READER)
    first_ns = int(everything[0]["time_ns"])
    expected = [row["frame"] for row in everything if 10 <= (int(row["time_ns"]) - first_ns) / 1e9 < 12]
    assert expected
    moment = datetime.fromtimestamp(first_ns // 10**9, UTC)
    nanoseconds = first_ns % 10**9
    for start, end in (
        ("10", "12"),
        ("10000ms", "12s"),
        *(
            tuple(f"{moment.replace(second=0):{form}}:{moment.second + more:02}.{nanoseconds:09}" for more in (10, 12))
            for form in ("%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%H:%M")
            if moment.second < 48
        ),
    ):
        found = [row["frame"] for row in rows(SLOW_READER, "--from", start, "--to", end)]
        assert found == expected, (start, end)


def test_the_capture_lasts_as_long_as_the_span() -> None:
    whole = library.analyze(SLOW_READER).capture
    assert library.analyze(SLOW_READER, filter="tcp").capture.duration_ns == whole.duration_ns
    for start, end, expected_ns in (
        (25, None, whole.duration_ns - 25 * 10**9),
        (None, 2, 2 * 10**9),
        ("10", "12.5", 2_500_000_000),
        ("00:00", 3, 3 * 10**9),
        (60, None, 0),
    ):
        capture = library.analyze(SLOW_READER, start=start, end=end).capture
        assert capture.duration_ns == expected_ns, (start, end)
    text = tcpwin("check", SLOW_READER, "--from", 25).stdout.decode()
    assert " in 5.09 s. " in text


def test_nothing_is_silent_after_the_span() -> None:
    # The connection lasts 30 s, so packets after the span are not reported missing.
    for connection in library.analyze(SLOW_READER, end=2):
        assert connection.duration_ns < 2 * 10**9
        last_ns = library.analyze(SLOW_READER).connections[0].start_ns + 2 * 10**9
        assert all(stall.end_ns <= last_ns for stall in connection.stalls)


def test_several_files_and_standard_input(tmp_path: Path) -> None:
    several = library.analyze([MANY_SHORT, KEEP_ALIVE], filter="port 8083")
    alone = library.analyze(MANY_SHORT, filter="port 8083")
    others = library.analyze(KEEP_ALIVE, filter="port 8083")
    assert several.capture.segments == alone.capture.segments + others.capture.segments
    done = tcpwin("packets", "-", "--filter", "port 8083", input=MANY_SHORT.read_bytes())
    assert list(csv.DictReader(io.StringIO(done.stdout.decode()))) == rows(MANY_SHORT, "--filter", "port 8083")
    out = tmp_path / "out.pcapng"
    done = tcpwin("slice", MANY_SHORT, "--filter", "src port 8083", "--connection", "0", "--json", "-o", out)
    assert done.returncode == 0
    assert {row["sport"] for row in rows(out)} == {"8083"}


def test_captures_side_by_side_are_selected_in_their_processes() -> None:
    done = tcpwin("analyze", MANY_SHORT, KEEP_ALIVE, "--filter", "src port 8083", "--json")
    assert done.returncode == 0, done.stderr
    for entry, path in zip(json.loads(done.stdout)["captures"], (MANY_SHORT, KEEP_ALIVE), strict=True):
        expected = library.analyze(path, filter="src port 8083")
        document = entry["document"]
        assert document["capture"]["packets_left_out"] == expected.capture.packets_left_out > 0
        assert document["selection"] == {"filter": "src port 8083", "start": None, "end": None}


def test_a_pair_of_captures_is_selected_alike() -> None:
    a, b = (CAPTURES / "wild" / name for name in ("lossy-path.pcapng.gz", "lossy-path-receiver.pcap.gz"))
    whole, some = library.pair(a, b), library.pair(a, b, filter="tcp", end=0.2)
    sent, sent_at_all = (each.to_dict()["connections"][0]["directions"][0]["sent"] for each in (some, whole))
    assert 0 < sent < sent_at_all == 1052


def test_what_libpcap_does_not_understand_is_wrong_usage() -> None:
    said = refused("analyze", KEEP_ALIVE, "--filter", "prt 443", status=2)
    assert said == "tcpwin: filter 'prt 443': syntax error (for packets of link type 1)\n"
    with pytest.raises(library.FilterError, match="link type 253"):
        compile_filter("tcp", 253)
    with pytest.raises(library.FilterError, match="characters"):
        library.analyze(KEEP_ALIVE, filter="a" * 100_000)
    with pytest.raises(library.FilterError, match="zero byte"):
        library.analyze(KEEP_ALIVE, filter="tcp\0")


def test_a_program_that_might_not_end_is_refused() -> None:
    # libpcap parses IPv6's headers in a loop.
    with pytest.raises(library.FilterError, match="loop"):
        library.analyze(IPV6, filter="ip6 protochain 6")


@all_cases("text", ["", "x", "-1", "25:00", "10:60", "2026-13-01", "1e3", "10:05:30Z", "9999999999999"])
def test_an_invalid_time_is_wrong_usage(text: str) -> None:
    said = refused("analyze", KEEP_ALIVE, f"--from={text}", status=2)
    assert "invalid time " in said


def test_moments() -> None:
    assert read_moment(12.5) == ("after", 12_500_000_000)
    assert read_moment("1.000000001") == ("after", 1_000_000_001)
    assert read_moment("2min") == ("after", 120 * 10**9)
    assert read_moment("10:05") == ("time_of_day", (10 * 60 + 5) * 60 * 10**9)
    assert read_moment("1970-01-01T00:00:01.5Z") == ("at", 1_500_000_000)
    assert read_moment("1970-01-01 02:00+02:00") == ("at", 0)
    assert read_moment(datetime(1970, 1, 2, tzinfo=UTC)) == ("at", 86_400 * 10**9)
    for none in (datetime(1970, 1, 2), float("nan"), float("inf"), True, 1e30, "9000-01-01"):  # noqa: DTZ001
        with pytest.raises(ValueError, match="time"):
            read_moment(none)


def test_a_span_that_ends_before_it_begins() -> None:
    assert "ends (9) before it begins (10)" in refused("check", KEEP_ALIVE, "--from", 10, "--to", 9, status=2)
    with pytest.raises(ValueError, match="before it begins"):
        Selection(start="10:05", end="10:04")


def test_without_libpcap_the_error_names_it(tmp_path: Path) -> None:
    (tmp_path / "cypcap.py").write_text("raise ImportError")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from tcpwin.cli import main; main()"
    command = [sys.executable, "-c", code, "analyze", str(KEEP_ALIVE), "--filter", "tcp"]
    done = subprocess.run(command, capture_output=True, timeout=HANG_S, check=False)
    assert done.returncode == 3
    assert done.stderr == b"tcpwin: filters are compiled by libpcap: pip install 'tcpwin[filter]'\n"


@pytest.mark.parametrize(
    ("display", "ours"),
    [
        ("tcp.port == 443", "'tcp port 443'"),
        ("ip.addr==10.0.0.1 && !(tcp.srcport eq 22)", "'host 10.0.0.1 and not ( tcp src port 22 )'"),
        ("ipv6.dst == fe80::1 || tcp", "'dst host fe80::1 or tcp'"),
        ("tcp.port == 80 || ip.src == 10.0.0.1 && tcp.port == 443", ""),
        ("tcp.analysis.zero_window", ""),
        ("ip.addr != 10.0.0.1", ""),
    ],
)
def test_a_display_filter_is_recognised_and_translated_where_possible(display: str, ours: str) -> None:
    with pytest.raises(library.FilterError, match="this is a display filter of Wireshark") as raised:
        compile_filter(display, 1)
    assert str(raised.value).partition("(7))")[2].removesuffix(" (for packets of link type 1)") == (
        f": {ours}" if ours else ""
    )
    if ours:
        assert compile_filter(ours.strip("'"), 1)
