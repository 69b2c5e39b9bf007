"""The kernel of a host from the output of `uname`, /proc/version, `getconf` and `hostnamectl`."""

from __future__ import annotations

from pathlib import Path

from cases import all_cases
from hypothesis import given, settings
from hypothesis import strategies as st

from tcpwin.hosts import KernelSample, UnknownLine
from tcpwin.hosts.formats.uname import read as read_samples
from tcpwin.hosts.formats.uname import recognise
from tcpwin.hosts.lines import Lines, Unknown

TRUTH = Path(__file__).parent / "truth" / "uname"


def read(text: str) -> tuple[list[KernelSample], Unknown]:
    lines = Lines(text.splitlines(keepends=True))
    return list(read_samples(lines)), lines.unknown


def truth(name: str) -> str:
    return (TRUTH / name).read_text(encoding="utf8")


def test_everything_of_one_host() -> None:
    samples, unknown = read(truth("all.txt"))
    assert samples == [
        KernelSample(
            time_ns=1_700_000_000_000_000_000,
            line=2,
            release="6.1.0-18-amd64",
            hostname="web1.example.org",
            page_size_bytes=16384,
            ticks_per_second=250,
        )
    ]
    assert samples[0].version == (6, 1)
    # getconf CLK_TCK is 100 everywhere and differs from CONFIG_HZ.
    assert unknown.first == [UnknownLine(8, "100")]
    assert unknown.count == 1


def test_proc_version_and_the_same_host_after_an_upgrade() -> None:
    samples, unknown = read(truth("version.txt"))
    assert samples == [
        KernelSample(None, 1, "4.18.0-553.el8_10.x86_64", hostname="db-7", page_size_bytes=4096),
        KernelSample(1_700_000_060_500_000_000, 6, "5.15.0-101-generic"),
        KernelSample(1_700_000_120_500_000_000, 8, "5.15.0-101-generic"),
    ]
    assert unknown == Unknown()


def test_hostnamectl() -> None:
    samples, unknown = read(truth("hostnamectl.txt"))
    assert samples == [KernelSample(None, 1, "6.6.13+bpo-amd64", hostname="edge-3")]
    assert unknown.first == [UnknownLine(10, "          Colour: blue")]
    assert unknown.count == 1


@all_cases(
    ("text", "release", "hostname"),
    [
        ("6.1.0-18-amd64\n", "6.1.0-18-amd64", None),
        ("6.12-rc3\n", "6.12-rc3", None),
        ("2.6.32.27\n", "2.6.32.27", None),
        ("6.1.0-18-amd64 x86_64\n", "6.1.0-18-amd64", None),
        ("Linux 5.10.0\n", "5.10.0", None),
        ("Linux 6.1.55 x86_64\n", "6.1.55", None),
        ("Linux\nweb-2\n6.9.3\n#1 SMP Tue\naarch64\n", "6.9.3", "web-2"),
        ("Linux vm 6.18.44-fc-v669 #1 SMP PREEMPT_DYNAMIC @0 x86_64 GNU/Linux\n", "6.18.44-fc-v669", "vm"),
    ],
)
def test_forms_of_uname(text: str, release: str, hostname: str | None) -> None:
    samples, unknown = read(text)
    assert [(sample.release, sample.hostname) for sample in samples] == [(release, hostname)]
    assert unknown == Unknown()


@all_cases(
    ("text", "lines"),
    [
        ("4096\n", [1]),  # The host is not named.
        ("Darwin mac 23.4.0 Darwin Kernel Version 23.4.0: arm64\n", [1]),
        ("192.168.1.10\n", [1]),
        ("12.5\n", [1]),
        ("5000\n", [1]),
        ("web-1\nweb-2\n", [2, 1]),
        ("CONFIG_HZ=" + "9" * 5000 + "!\n", [1]),
    ],
)
def test_without_a_release_nothing_is_known(text: str, lines: list[int]) -> None:
    samples, unknown = read(text)
    assert samples == []
    assert [line.number for line in unknown.first] == lines


def test_contradictions_are_unknown() -> None:
    samples, unknown = read("6.1.55\n4096\n16384\n")
    assert samples == [KernelSample(None, 1, "6.1.55", page_size_bytes=4096)]
    assert unknown.first == [UnknownLine(3, "16384")]


@all_cases(
    ("text", "sure"),
    [
        ("Linux vm 6.18.44 #1 SMP\n", 80),
        ("Linux version 6.18.44 (me)\n", 80),
        ("    Kernel: Linux 6.6.13\n", 80),
        ("6.1.0-18-amd64\n4096\n", 60),
        ("4096\n", 0),
        ("192.168.1.10\n192.168.1.11\n", 0),
        ("0.5\n1.25\n", 0),
        ("one, two\nthree, four\n6.1.0\n", 0),
        ("one\ntwo\nthree\n6.1.0\n", 0),
        ("one\n6.1.0\n", 60),
        ("", 0),
    ],
)
def test_recognised_by_a_release(text: str, sure: int) -> None:
    assert recognise(text.splitlines()) == sure


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text() | st.from_regex(r"((Linux |Kernel: |6\.1|CONFIG_)[A-Za-z0-9.=# -]{0,20}\n){0,8}", fullmatch=True))
def test_no_text_raises(text: str) -> None:
    samples, unknown = read(text)
    recognise(text.splitlines())
    assert len(samples) + unknown.count <= 2 * len(text)


def test_very_long_lines_are_soon_done() -> None:
    for text in ("a" * 500_000, "6." * 250_000, "1" * 500_000, "Linux " * 80_000, "A" * 31 + ": " * 200_000):
        samples, unknown = read(text)
        assert (len(samples), unknown.count) == (0, 1)
