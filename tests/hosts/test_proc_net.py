"""/proc/net/netstat, snmp and snmp6: nstat's names, separate samples, mismatched pairs of lines omitted."""

from __future__ import annotations

from pathlib import Path
from string import ascii_letters, ascii_uppercase, digits

from cases import all_cases
from hypothesis import given, settings
from hypothesis import strategies as st

from tcpwin.hosts import CounterSample, UnknownLine
from tcpwin.hosts.formats.proc_net import MAX_NAMES, recognise
from tcpwin.hosts.formats.proc_net import read as read_samples
from tcpwin.hosts.lines import Lines, Unknown

TRUTH = Path(__file__).parent / "truth" / "proc_net"


def read(text: str) -> tuple[list[CounterSample], Unknown]:
    lines = Lines(text.splitlines(keepends=True))
    return list(read_samples(lines)), lines.unknown


def since_boot(time_ns: int | None, line: int, values: dict[str, int]) -> CounterSample:
    return CounterSample(time_ns, line, values, is_increment=False, rates={})


def test_both_files_together_and_again() -> None:
    samples, unknown = read((TRUTH / "netstat_snmp.txt").read_text(encoding="utf8"))
    assert samples == [
        since_boot(
            1_700_000_000_500_000_000,
            2,
            {
                "TcpExtSyncookiesSent": 0,
                "TcpExtPruneCalled": 3,
                "TcpExtTCPRcvCollapsed": 41,
                "IpExtInNoRoutes": 0,
                "IpExtInOctets": 473322900,
                "MPTcpExtMPCapableSYNRX": 1,
                "MPTcpExtMPCurrEstab": 2,
                "IpForwarding": 2,
                "IpDefaultTTL": 64,
                "IpInReceives": 10363,
                "IcmpInMsgs": 1,
                "IcmpInErrors": 0,
                "IcmpMsgInType3": 1,
                "IcmpMsgOutType3": 4,
                "IcmpMsgOutType8": 6,
                "TcpRtoAlgorithm": 1,
                "TcpMaxConn": -1,
                "TcpRetransSegs": 7,
                "UdpInDatagrams": 61,
                "UdpLiteInDatagrams": 0,
            },
        ),
        since_boot(
            1_700_000_001_500_000_000,
            24,
            {
                "TcpExtSyncookiesSent": 0,
                "TcpExtPruneCalled": 4,
                "TcpExtTCPRcvCollapsed": 44,
                "TcpRtoAlgorithm": 1,
                "TcpMaxConn": -1,
                "TcpRetransSegs": 9,
            },
        ),
    ]
    assert unknown == Unknown()


def test_snmp6_has_one_counter_a_line() -> None:
    samples, unknown = read((TRUTH / "snmp6.txt").read_text(encoding="utf8"))
    assert samples == [
        since_boot(
            None,
            1,
            {
                "Ip6InReceives": 12,
                "Ip6OutOctets": 18446744073709551615,
                "Icmp6OutType133": 3,
                "Udp6InDatagrams": 0,
                "UdpLite6InDatagrams": 0,
            },
        ),
        since_boot(None, 6, {"Ip6InReceives": 13}),
    ]
    assert unknown.first == [UnknownLine(7, "Ip6OutOctets                    \t18446744073709551616")]
    assert unknown.count == 1


def test_a_pair_that_does_not_fit_is_rejected_and_a_section_that_comes_again_is_a_new_sample() -> None:
    samples, unknown = read((TRUTH / "unstamped.txt").read_text(encoding="utf8"))
    assert samples == [
        since_boot(None, 1, {"TcpMaxConn": -1, "TcpRetransSegs": 7}),
        since_boot(None, 6, {"TcpMaxConn": -1, "TcpRetransSegs": 8}),
    ]
    assert unknown.first == [
        UnknownLine(3, "Udp: InDatagrams NoPorts"),
        UnknownLine(4, "Udp: 61"),
        UnknownLine(5, "TcpExt: PruneCalled"),
        UnknownLine(8, "TCP: inuse 5 orphan 0"),
        UnknownLine(9, "Tcp: MaxConn RetransSegs"),
        UnknownLine(10, "Tcp: -1 1_0"),
    ]
    assert unknown.count == 6


@all_cases(
    "text",
    [
        "Tcp: MaxConn\nTcp: " + "9" * 5000 + "\n",
        "Tcp: MaxConn\nTcp: 18446744073709551616\n",
        "Tcp: MaxConn\nTcp: -99999999999999999999\n",
        "Tcp: MaxConn\nTcp: 0x3\n",
        "Tcp: MaxConn\nTcp: \u0663\n",
        "Tcp: MaxConn\nTcp:\n",
        "Tcp: MaxConn\nIp: 1\n",
        "TcpExt: " + " ".join(f"A{i}" for i in range(MAX_NAMES + 1)) + "\n"
        "TcpExt: " + " ".join("1" for _ in range(MAX_NAMES + 1)) + "\n",
    ],
)
def test_numbers_that_no_kernel_prints_are_rejected_with_their_names(text: str) -> None:
    samples, unknown = read(text)
    assert samples == []
    assert unknown.count == 2


@all_cases(
    ("text", "sure"),
    [
        ("TcpExt: SyncookiesSent PruneCalled\nTcpExt: 0 0\n", 95),
        ("Ip: Forwarding DefaultTTL\nIp: 1 64\n", 95),
        ("Ip: Forwarding DefaultTTL\nIp: 1 64\nTCP: inuse 5\n", 95),
        ("Ip: Forwarding DefaultTTL\none\ntwo\n", 60),
        ("Ip6InReceives                   \t12\n", 85),
        ("TCP: inuse 5 orphan 0 tw 0 alloc 6 mem 1054\n", 0),
        ("#kernel\nIp6InReceives                   12                 0.0\n", 0),
        ("", 0),
    ],
)
def test_recognised_by_its_sections(text: str, sure: int) -> None:
    assert recognise(text.splitlines()) == sure


NAMES = st.builds(str.__add__, st.sampled_from(ascii_uppercase), st.text(ascii_letters + digits, max_size=12))
SECTIONS = st.dictionaries(
    st.sampled_from(["TcpExt", "IpExt", "Ip", "Tcp", "Udp"]),
    st.dictionaries(NAMES, st.integers(-1, (1 << 64) - 1), min_size=1),
    min_size=1,
)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(SECTIONS, max_size=5))
def test_text_written_like_the_kernel_is_read_back(samples: list[dict[str, dict[str, int]]]) -> None:
    text = ""
    for number, sections in enumerate(samples):
        text += f"### {1_700_000_000 + number}\n"
        for section, counters in sections.items():
            text += f"{section}: {' '.join(counters)}\n{section}: {' '.join(map(str, counters.values()))}\n"
    found, unknown = read(text)
    # TcpExt with A equals Tcp with ExtA: such a sample is split.
    expected = [
        {section + name: value for section, counters in sections.items() for name, value in counters.items()}
        for sections in samples
    ]
    if all(len(each) == sum(map(len, sections.values())) for each, sections in zip(expected, samples, strict=True)):
        assert [sample.values for sample in found] == expected
    assert unknown == Unknown()


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text() | st.from_regex(r"((Tcp|Ip6X|Udp)[A-Za-z0-9 :\t-]{0,20}\n){0,8}", fullmatch=True))
def test_no_text_raises(text: str) -> None:
    samples, unknown = read(text)
    recognise(text.splitlines())
    assert len(samples) + unknown.count <= 2 * len(text)
