"""Settings: `sysctl` output, sysctl.d files and dumps of /proc/sys give the same names and values."""

from __future__ import annotations

from pathlib import Path

from cases import all_cases
from hypothesis import given, settings
from hypothesis import strategies as st

from tcpwin.hosts import SettingsSample, UnknownLine
from tcpwin.hosts.formats.sysctl import MAX_CHARACTERS, recognise
from tcpwin.hosts.formats.sysctl import read as read_samples
from tcpwin.hosts.lines import Lines, Unknown

TRUTH = Path(__file__).parent / "truth" / "sysctl"


def read(text: str) -> tuple[list[SettingsSample], Unknown]:
    lines = Lines(text.splitlines(keepends=True))
    return list(read_samples(lines)), lines.unknown


def truth(name: str) -> str:
    return (TRUTH / name).read_text(encoding="utf8")


def test_output_of_sysctl_with_errors_among_it() -> None:
    samples, unknown = read(truth("output.txt"))
    assert samples == [
        SettingsSample(
            None,
            5,
            {
                "kernel.hostname": "web 1",
                "net.ipv4.conf.eth0/100.forwarding": "1",
                "net.ipv4.tcp_rmem": "4096 131072 6291456",
                "net.ipv4.ip_local_reserved_ports": "",
                "kernel.core_pattern": "|/usr/lib/core -e=%e",
                "net.ipv4.tcp_sack": "1",
            },
        )
    ]
    assert samples[0].numbers("net.ipv4.tcp_rmem") == (4096, 131072, 6291456)
    assert samples[0].number("net.ipv4.tcp_sack") == 1
    assert samples[0].number("kernel.hostname") is None
    assert unknown == Unknown()


def test_a_file_of_sysctl_d() -> None:
    samples, unknown = read(truth("conf.txt"))
    assert samples == [
        SettingsSample(
            None,
            4,
            {
                "net.ipv4.tcp_rmem": "4096 131072 67108864",
                "net.ipv4.tcp_congestion_control": "bbr",
                "net.ipv4.conf.eth0/100.rp_filter": "2",
                "net.ipv4.conf.*.accept_redirects": "0",
            },
        )
    ]
    assert unknown.first == [UnknownLine(9, "this is no setting")]


def test_a_dump_with_grep() -> None:
    samples, unknown = read(truth("grep.txt"))
    assert samples == [
        SettingsSample(
            None,
            1,
            {
                "net.ipv4.tcp_rmem": "4096 131072 33554432",
                "net.ipv4.conf.eth0/100.forwarding": "1",
                "kernel.core_pattern": "|/bin/x a=b",
                "net.ipv4.tcp_sack": "1",
            },
        )
    ]
    assert unknown.first == [UnknownLine(6, "tcp_sack:1")]


def test_a_dump_with_tail() -> None:
    samples, unknown = read(truth("tail.txt"))
    assert samples == [
        SettingsSample(
            None,
            2,
            {
                "net.ipv4.tcp_rmem": "1 2 3",
                "kernel.version": "#1 SMP @0",
                "kernel.core_modes": "file pipe",
                "vm.swappiness": "10",
            },
        )
    ]
    assert unknown == Unknown()


def test_a_stamp_begins_a_new_sample() -> None:
    samples, unknown = read("### 1700000000\nnet.ipv4.tcp_sack = 1\n### 1700000001.5\nnet.ipv4.tcp_sack = 0\n")
    assert samples == [
        SettingsSample(1_700_000_000_000_000_000, 2, {"net.ipv4.tcp_sack": "1"}),
        SettingsSample(1_700_000_001_500_000_000, 4, {"net.ipv4.tcp_sack": "0"}),
    ]
    assert unknown == Unknown()


def test_a_command_that_was_pasted_with_its_output_says_nothing() -> None:
    samples, unknown = read("$ sysctl net.ipv4.tcp_mem\nnet.ipv4.tcp_mem = 190791 254389 381582\n")
    assert samples == [SettingsSample(None, 2, {"net.ipv4.tcp_mem": "190791 254389 381582"})]
    assert unknown == Unknown()


def test_a_number_of_too_many_digits_is_rejected() -> None:
    samples, _ = read("net.ipv4.tcp_sack = " + "9" * 5000 + "\n")
    assert samples[0].number("net.ipv4.tcp_sack") is None


def test_settings_of_a_sample_are_bounded() -> None:
    value = "x" * 1_000_000
    samples, unknown = read("".join(f"net.key{i} = {value}\n" for i in range(20)))
    assert sum(map(len, samples[0].values.values())) <= MAX_CHARACTERS
    assert unknown.count == 20 - MAX_CHARACTERS // 1_000_008
    # Each line of one file extends its value: that is bounded too.
    samples, unknown = read("==> /proc/sys/kernel/x <==\n" + "y\n" * 200_000)
    assert len(samples[0].values["kernel.x"]) < 20_000
    assert unknown.count > 190_000


@all_cases(
    ("text", "sure"),
    [
        ("net.ipv4.tcp_sack = 1\n", 90),
        ("# a comment\nnet.ipv4.tcp_sack=1\n", 90),
        ("/proc/sys/net/ipv4/tcp_sack:1\n", 90),
        ("==> /proc/sys/net/ipv4/tcp_sack <==\n1\n", 90),
        ("sysctl: permission denied on key 'net.x'\nvm.swappiness = 60\n", 90),
        ("one\ntwo\nthree\nvm.swappiness = 60\n", 60),
        ("CONFIG_HZ=250\n", 0),
        ("tcp ESTAB 0 0 net.a:1 b:2 rto=1\n", 0),
        ("", 0),
    ],
)
def test_recognised_by_names_in_the_kernels_areas(text: str, sure: int) -> None:
    assert recognise(text.splitlines()) == sure


PART = st.from_regex(r"[a-z_][a-z0-9_-]{0,8}", fullmatch=True)
VLAN = st.from_regex(r"eth[0-9]\.[0-9]{1,3}", fullmatch=True)
VALUE = st.lists(st.from_regex(r"[A-Za-z0-9|%/-][A-Za-z0-9|%/:-]{0,8}", fullmatch=True), max_size=3)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.dictionaries(st.tuples(st.sampled_from(["net", "kernel", "vm"]), PART, PART | VLAN), VALUE, max_size=6))
def test_output_and_dump_of_the_same_settings_are_the_same(chosen: dict[tuple[str, str, str], list[str]]) -> None:
    output = dump = ""
    expected = {}
    for parts, words in chosen.items():
        name = ".".join(part.replace(".", "/") for part in parts)
        expected[name] = " ".join(words)
        output += f"{name} = {chr(9).join(words)}\n"
        dump += f"/proc/sys/{'/'.join(parts)}:{chr(9).join(words)}\n"
    for text in (output, dump):
        samples, unknown = read(text)
        assert [sample.values for sample in samples] == ([expected] if expected else [])
        assert unknown == Unknown()


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text() | st.from_regex(r"((/proc/sys/|==> |net|-|#)[a-z./=: <>-]{0,20}\n){0,8}", fullmatch=True))
def test_no_text_raises(text: str) -> None:
    samples, unknown = read(text)
    recognise(text.splitlines())
    assert len(samples) + unknown.count <= 2 * len(text)
