"""`tcpwin bdp`: units, the three calculations, the table, the JSON document, the audit, and errors."""

import json
from fractions import Fraction
from pathlib import Path

import click
import pytest
from cases import all_cases
from cli.command import refused, tcpwin

from tcpwin.cli.bdp import parse_rate, parse_rtt, parse_size


@all_cases(
    ("text", "rtt_ns"),
    [
        ("300ms", 300_000_000),
        ("0.3s", 300_000_000),
        (".3s", 300_000_000),
        ("300 ms", 300_000_000),
        ("85us", 85_000),
        ("85µs", 85_000),
        ("85μs", 85_000),
        ("500NS", 500),
        ("3e-1s", 300_000_000),
        ("1min", 60_000_000_000),
        ("0.023ms", 23_000),
        ("60min", 3_600_000_000_000),
        ("1ns", 1),
    ],
)
def test_times(text: str, rtt_ns: int) -> None:
    assert parse_rtt(text) == rtt_ns


@all_cases(
    ("text", "rate_bps"),
    [
        ("3.5gbit", 3_500_000_000),
        ("3.5Gbit/s", 3_500_000_000),
        ("3.5 Gbit/s", 3_500_000_000),
        ("3500mbit", 3_500_000_000),
        ("3500mbits/s", 3_500_000_000),
        ("10Mbps", 10_000_000),
        ("10mbps", 10_000_000),
        ("10Mb/s", 10_000_000),
        ("10Mb", 10_000_000),
        ("10M", 10_000_000),
        ("1e9", 1_000_000_000),
        ("1.5e3", 1500),
        ("125MB/s", 1_000_000_000),
        ("125MBps", 1_000_000_000),
        ("125 Mbytes/s", 1_000_000_000),
        ("1MiB/s", 8_388_608),
        ("1kibit", 1024),
        ("56kbit", 56_000),
        ("1Tbit", 1_000_000_000_000),
        ("8bit/s", 8),
    ],
)
def test_rates(text: str, rate_bps: int) -> None:
    assert parse_rate(text) == rate_bps


@all_cases(
    ("text", "size_bytes"),
    [
        ("65535", 65_535),
        ("65535B", 65_535),
        ("65535 bytes", 65_535),
        ("64K", 65_536),
        ("64k", 65_536),
        ("64KiB", 65_536),
        ("64kiB", 65_536),
        ("64KB", 64_000),
        ("64kB", 64_000),
        ("64 kB", 64_000),
        ("4M", 4_194_304),
        ("128MiB", 134_217_728),
        ("131.25MB", 131_250_000),
        ("1G", 1_073_741_824),
        ("1Ti", 1_099_511_627_776),
        ("1e6", 1_000_000),
    ],
)
def test_sizes(text: str, size_bytes: int) -> None:
    assert parse_size(text) == size_bytes


def test_nothing_is_lost_in_a_float() -> None:
    assert parse_rtt("0.1ms") == 100_000
    assert parse_rate("0.1gbit") == 100_000_000
    assert parse_size("0.1K") == Fraction(1024, 10)


@all_cases("text", ["", "ms", "300", "300m", "300 m s", "3,5ms", "-1ms", "+1ms", "1ms1", "nan", "inf", "0x1ms"])
def test_times_that_are_not_understood(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"is not understood: write it as 300ms, 0.3s or 85us\.$"):
        parse_rtt(text)


@all_cases("text", ["", "fast", "10ms", "125MB", "125B", "10Mbp", "10ibit", "10M/h", "1e", "1e999", "1" * 21])
def test_rates_that_are_not_understood(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"is not understood: write it as 3\.5gbit"):
        parse_rate(text)


@all_cases("text", ["", "64kb", "64Kb", "64kbit", "64 K B", "1E", "64iB", "9" * 5000])
def test_sizes_that_are_not_understood(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not understood: write it as 64K"):
        parse_size(text)


def test_a_number_out_of_bounds_names_the_bounds() -> None:
    with pytest.raises(click.BadParameter, match=r"'61min' is not between 1 ns and 1 hour\.$"):
        parse_rtt("61min")
    with pytest.raises(click.BadParameter, match=r"'0s' is not between 1 ns and 1 hour\.$"):
        parse_rtt("0s")
    with pytest.raises(click.BadParameter, match=r"'1e99' is not between 1 bit/s and 1 Pbit/s\.$"):
        parse_rate("1e99")
    with pytest.raises(click.BadParameter, match=r"'2000T' is not between 1 byte and 1 PiB\.$"):
        parse_size("2000T")


def lines_of(*arguments: object) -> list[str]:
    """Return the lines that a successful run prints."""
    done = tcpwin("bdp", *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    return done.stdout.decode().splitlines()


def test_the_window_of_a_path() -> None:
    """The complete text for Cloudflare's path."""
    arguments = ("--rtt", "300ms", "--rate", "3.5gbit", "--kernel", "5.15.32", "--adv-win-scale", "-2")
    assert lines_of(*arguments) == [
        "3.5 Gbit/s over a round trip of 300 ms need 131 MB in flight.",
        "",
        "  window          131,250,000 bytes (125.2 MiB)",
        "  segments        90,642 of 1,448 bytes payload; 87,500 packets of 1,500 bytes",
        "  window scale    11 is the smallest shift",
        "  receive buffer  525,000,000 bytes (500.7 MiB) by tcp_adv_win_scale -2",
        "  send buffer     262,500,000 bytes (250.3 MiB)",
        "",
        "What the defaults reach (Linux 5.15)",
        "  tcp_rmem        6,291,456 bytes: 3.15 MB in flight, 83.9 Mbit/s, 2.4 % of that",
        "  tcp_wmem        4,194,304 bytes: 2.1 MB in flight, 55.9 Mbit/s, 1.6 % of that",
        "",
        "To set: tcp_rmem where data is received, tcp_wmem where it is sent (a Linux receiver then offers shift 13)",
        "  net.ipv4.tcp_rmem = 4096 131072 525000000",
        "  net.ipv4.tcp_wmem = 4096 16384 262500000",
        "  net.ipv4.tcp_adv_win_scale = -2",
        "",
        "- The send buffer is 2 × the window, the kernel's own factor (3 with BBR): large segments need less, small "
        "writes more.",
        "- net.core.rmem_max and wmem_max bound only SO_RCVBUF and SO_SNDBUF, which switch autotuning off for the "
        "socket.",
    ]


@all_cases(
    ("arguments", "first"),
    [
        (["--rtt", "85ms", "--rate", "10mbit"], "10 Mbit/s over a round trip of 85 ms need 106 kB in flight."),
        (["--rtt", "85ms", "--window", "65535"], "A window of 65.5 kB carries 6.17 Mbit/s over a round trip of 85 ms."),
        (["--rtt", "30ms", "--window", "64K"], "A window of 65.5 kB carries 17.5 Mbit/s over a round trip of 30 ms."),
        (["--rtt", "30ms", "--rate", "1gbit"], "1 Gbit/s over a round trip of 30 ms need 3.75 MB in flight."),
        (
            ["--rate", "10mbit", "--window", "64K"],
            "A window of 65.5 kB carries 10 Mbit/s over a round trip of 52.4 ms at most.",
        ),
    ],
)
def test_the_first_line_answers(arguments: list[str], first: str) -> None:
    assert lines_of(*arguments)[0] == first


def test_a_path_that_the_defaults_fill_needs_nothing() -> None:
    lines = lines_of("--rtt", "85ms", "--rate", "10mbit", "--kernel", "6.18", "--mss", "1460")
    assert "  tcp_rmem        33,554,432 bytes: 16.8 MB in flight, 1.58 Gbit/s, enough" in lines
    assert "  segments        72 of 1,460 bytes payload; 70 packets of 1,500 bytes" in lines
    assert "  nothing: the defaults suffice" in lines


def test_a_window_too_large_for_any_shift() -> None:
    assert "  window scale    too large for any shift" in lines_of("--rtt", "1s", "--rate", "10gbit")


def test_the_document() -> None:
    done = tcpwin("bdp", "--rtt", "200ms", "--rate", "10Mbps", "--kernel", "6.6", "--scaling-ratio", "64", "--json")
    assert json.loads(done.stdout) == {
        "schema": "tcpwin/bdp/1",
        "asked": "window",
        "rtt_ns": 200_000_000,
        "rate_bps": 10_000_000,
        "window_bytes": 250_000,
        "mss_bytes": 1448,
        "segments": 172,
        "packets_of_1500_bytes": 166,
        "smallest_shift": 2,
        "offered_shift": 7,
        "kernel": "6.6",
        "model": "scaling_ratio 64/256",
        "receive_buffer_bytes": 1_000_000,
        "send_buffer_bytes": 500_000,
        "defaults": {
            "tcp_rmem_bytes": [4096, 131_072, 6_291_456],
            "tcp_wmem_bytes": [4096, 16_384, 4_194_304],
            "adv_win_scale": None,
            "receive": {"buffer_bytes": 6_291_456, "window_bytes": 1_572_864, "rate_bps": 62_914_560, "share": 1.0},
            "send": {"buffer_bytes": 4_194_304, "window_bytes": 2_097_152, "rate_bps": 83_886_080, "share": 1.0},
        },
        "lines": [],
        "notes": [
            "From 6.6 on the kernel measures the share of payload per connection; 64/256 is assumed here. A "
            "connection's ratio is 256 × Recv-Q ÷ r of `ss -tm`.",
            "The send buffer is 2 × the window, the kernel's own factor (3 with BBR): large segments need less, small "
            "writes more.",
            "net.core.rmem_max and wmem_max bound only SO_RCVBUF and SO_SNDBUF, which switch autotuning off for the "
            "socket.",
        ],
    }


def test_the_document_of_a_rate_and_of_a_round_trip() -> None:
    rate = json.loads(tcpwin("bdp", "--rtt", "85ms", "--window", "65535", "--json").stdout)
    assert (rate["asked"], rate["rate_bps"], rate["window_bytes"], rate["kernel"]) == ("rate", 6_168_000, 65_535, None)
    rtt = json.loads(tcpwin("bdp", "--rate", "3gbit", "--window", "1", "--json").stdout)
    assert (rtt["asked"], rtt["rtt_ns"], rtt["window_bytes"]) == ("rtt", 8 / 3, 1)


SYSCTL = """\
kernel.osrelease = 5.15.32
net.core.rmem_max = 536870912
net.ipv4.tcp_adv_win_scale = -2
net.ipv4.tcp_rmem = 8192\t2097152\t16777216
net.ipv4.tcp_slow_start_after_idle = 1
net.ipv4.tcp_wmem = 4096\t16384\t536870912
"""


def test_an_audit(tmp_path: Path) -> None:
    """Cloudflare's old receive buffer; kernel and tcp_adv_win_scale come from the dump."""
    dump = tmp_path / "sysctl.txt"
    dump.write_text(SYSCTL)
    lines = lines_of("--rtt", "300ms", "--rate", "3.5gbit", "--audit", dump)
    assert "  receive buffer  525,000,000 bytes (500.7 MiB) by tcp_adv_win_scale -2" in lines
    assert "What the defaults reach (Linux 5.15)" in lines
    assert lines[lines.index(f"{dump}: 1 setting holds the rate below that") :] == [
        f"{dump}: 1 setting holds the rate below that",
        "",
        "  limits  net.ipv4.tcp_rmem = 8192 2097152 16777216",
        "          As receiver: 16,777,216 bytes allow a window of 4,194,304 (tcp_adv_win_scale -2): 112 Mbit/s of "
        "the 3.5 Gbit/s wanted, which takes 131,250,000.",
        "          Side effects: Each connection whose application reads slowly may hold that much memory, counted in "
        "tcp_mem. A large queue that fills up is collapsed, and receiving waits for it: Cloudflare measured 32 to 64 "
        "ms with 137 to 170 MiB, and no collapse where the buffer was twice the window or more. A new shift counts for "
        "new connections only.",
        "          net.ipv4.tcp_rmem = 8192 2097152 525000000",
        "",
        "  risk    net.ipv4.tcp_slow_start_after_idle = 1",
        "          After a pause longer than the retransmission timeout the congestion window is halved, more "
        "often after longer pauses, down to 10 segments, and then grows again. This matters for bursts, not steady "
        "transfers.",
        "          Side effects: After a pause the whole old window leaves in one burst. The setting belongs to the "
        "network namespace: a container has its own.",
        "          net.ipv4.tcp_slow_start_after_idle = 0",
    ]
    document = json.loads(tcpwin("bdp", "--rtt", "300ms", "--rate", "3.5gbit", "--audit", dump, "--json").stdout)
    assert document["kernel"] == "5.15"
    assert document["audit"]["file"] == str(dump)
    assert [list(advice) for advice in document["audit"]["advice"]] == [
        ["setting", "kind", "value", "should_be", "why", "side_effects", "line"]
    ] * 2
    assert document["audit"]["advice"][1]["line"] == "net.ipv4.tcp_slow_start_after_idle = 0"


def test_an_audit_without_fault(tmp_path: Path) -> None:
    dump = tmp_path / "sysctl.txt"
    dump.write_text(SYSCTL)
    lines = lines_of("--rtt", "1ms", "--rate", "100mbit", "--audit", dump)
    assert lines[-1] == f"{dump}: nothing limits"


def test_what_the_caller_says_of_the_kernel_counts(tmp_path: Path) -> None:
    dump = tmp_path / "sysctl.txt"
    dump.write_text(SYSCTL)
    lines = lines_of("--rtt", "300ms", "--rate", "3.5gbit", "--audit", dump, "--kernel", "6.18")
    assert "What the defaults reach (Linux 6.18)" in lines
    assert "          net.ipv4.tcp_rmem = 8192 2097152 262500000" in lines


@all_cases(
    ("arguments", "words"),
    [
        ([], "give two of --rtt, --rate and --window: the third follows from them"),
        (["--rtt", "1ms"], "give two of --rtt, --rate and --window"),
        (["--rtt", "1ms", "--rate", "1g", "--window", "1M"], "give two of --rtt, --rate and --window"),
        (["--rtt", "300", "--rate", "1g"], "Invalid value for '--rtt': '300' is not understood"),
        (["--rtt", "1ms", "--rate", "125MB"], "Invalid value for '--rate': '125MB' is not understood"),
        (["--rtt", "1ms", "--window", "64kb"], "Invalid value for '--window': '64kb' is not understood"),
        (["--rtt", "1ms", "--rate", "1g", "--kernel", "new"], "Invalid value for '--kernel': not a kernel version"),
        (["--rtt", "1ms", "--rate", "1g", "--adv-win-scale", "32"], "32 is not in the range -31<=x<=31"),
        (["--rtt", "1ms", "--rate", "1g", "--scaling-ratio", "0"], "0 is not in the range 1<=x<=255"),
        (["--rtt", "1ms", "--rate", "1g", "--mss", "0"], "0 is not in the range 1<=x<=65535"),
    ],
)
def test_wrong_usage_exits_with_2(arguments: list[str], words: str) -> None:
    assert words in refused("bdp", *arguments, status=2)


def test_files_without_settings_exit_with_3(tmp_path: Path) -> None:
    path = ("bdp", "--rtt", "1ms", "--rate", "1g", "--audit")
    absent = tmp_path / "absent.txt"
    assert refused(*path, absent) == f"tcpwin: {absent}: No such file or directory\n"
    assert refused(*path, tmp_path).startswith(f"tcpwin: {tmp_path}: ")
    empty = tmp_path / "empty.txt"
    empty.write_bytes(b"")
    assert refused(*path, empty) == f"tcpwin: {empty}: empty\n"
    counters = tmp_path / "sockstat.txt"
    counters.write_text("sockets: used 165\nTCP: inuse 5 orphan 0 tw 0 alloc 6 mem 1054\n")
    expected = f"tcpwin: {counters}: holds no network settings: write one with `sysctl -a > FILE`\n"
    assert refused(*path, counters) == expected


def test_help_says_the_units() -> None:
    text = " ".join(tcpwin("bdp", "--help").stdout.decode().split())
    assert "64K = 64KiB = 65536 bytes; 64kB = 64000." in text
    assert "125MB/s (bytes/s)" in text
