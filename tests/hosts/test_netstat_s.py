"""`netstat -s`: each sentence, printed by the real program from distinct numbers, gives its counter."""

from __future__ import annotations

from pathlib import Path

from cases import all_cases

from tcpwin.hosts import CounterSample, SnapshotFile
from tcpwin.hosts.formats.netstat_s import SENTENCES

TRUTH = Path(__file__).parent / "truth" / "netstat_s"

# From a CentOS 6 host (net-tools 1.60), reduced to sentences that differ from today's; counters by RFC 1213's and the
# kernel's descriptions (net/ipv4/proc.c, snmp4_net_list).
OLDER = """\
Tcp:
    9 active connections openings
    57 passive connection openings
    6682 segments send out
    175 segments retransmited
    8 bad segments received.
TcpExt:
    17 times recovered from packet loss by selective acknowledgements
    18 TCP data loss events
    TCPLostRetransmit: 1
    5 timeouts after SACK recovery
    91 other TCP timeouts
    6 DSACKs sent for old packets
"""
TRUTHS = {"older": OLDER}


def read(text: str) -> tuple[list[CounterSample], list[str]]:
    file = SnapshotFile(text.encode())
    samples = list(file)
    return samples, [line.text for line in file.unknown.first]


def test_every_counter_that_the_program_prints() -> None:
    """The program read distinct.proc as /proc/net and printed distinct.txt (net-tools 2.10, Debian 12)."""
    kernel = SnapshotFile((TRUTH / "distinct.proc").read_bytes())
    printed = SnapshotFile(TRUTH / "distinct.txt")
    assert printed.format == "netstat_s"
    (told,) = kernel
    (read,) = printed

    assert printed.unknown.count == 0
    assert read.is_increment is False
    assert read.values.items() <= told.values.items()
    # It prints no settings, and the same ICMP sentences for both directions.
    left_out = {name for name in told.values.keys() - read.values.keys() if not name.startswith("Icmp")}
    assert left_out == {"IpDefaultTTL", "TcpRtoAlgorithm", "TcpRtoMin", "TcpRtoMax", "TcpMaxConn"}


def test_a_sentence_is_of_one_counter_only() -> None:
    for section, sentences in SENTENCES.items():
        assert all(sentence.count("#") == 1 for sentence in sentences), section


def test_output_of_older_releases() -> None:
    (sample,), unknown = read(OLDER)
    assert sample.values == {
        "TcpActiveOpens": 9,
        "TcpPassiveOpens": 57,
        "TcpOutSegs": 6682,
        "TcpRetransSegs": 175,
        "TcpInErrs": 8,
        "TcpExtTCPSackRecovery": 17,
        "TcpExtTCPLoss": 18,
        "TcpExtTCPLostRetransmit": 1,
        "TcpExtTCPSackFailures": 5,
        "TcpExtTCPTimeouts": 91,
        "TcpExtTCPDSACKOldSent": 6,
    }
    assert unknown == []


def test_stamps_and_repetition_begin_samples() -> None:
    run = "Tcp:\n    {} segments retransmitted\n    2 resets sent\n"
    text = "### 1700000000.5\n" + run.format(7) + "### 1700000001.5\n" + run.format(9) + run.format(11)
    samples, unknown = read(text)
    assert [(each.time_ns, each.values["TcpRetransSegs"]) for each in samples] == [
        (1_700_000_000_500_000_000, 7),
        (1_700_000_001_500_000_000, 9),
        (1_700_000_001_500_000_000, 11),
    ]
    assert unknown == []


@all_cases(
    "line",
    [
        "    12 words that no release prints",
        "    99999999999999999999 segments retransmitted",
        "    -3 segments retransmitted",
        "    3.5 segments retransmitted",
        "    segments retransmitted",
    ],
)
def test_a_line_without_a_counter_is_named(line: str) -> None:
    (sample,), unknown = read(OLDER.replace("    175 segments retransmited", line))
    assert "TcpRetransSegs" not in sample.values
    assert unknown == [line]


def test_a_counter_outside_of_a_section_is_not_guessed() -> None:
    (sample,), unknown = read("    5 segments received\n" + OLDER)
    assert "TcpInSegs" not in sample.values
    assert unknown == ["    5 segments received"]
