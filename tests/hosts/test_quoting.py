"""Text pasted from mails and comments reads like the tool's output and keeps its line numbers."""

from __future__ import annotations

import quopri
from dataclasses import replace
from pathlib import Path

import pytest
from cases import all_cases
from hypothesis import given
from hypothesis import strategies as st
from reference import LAB_RUNS

from tcpwin.hosts import CounterSample, SnapshotFile, SocketSample
from tcpwin.hosts.quoting import Quoting, find_quoting, unquoted

SS = """\
State Recv-Q Send-Q Local Address:Port Peer Address:Port Process
ESTAB 0      1448   10.9.1.1:5201      10.9.2.2:36984
\t cubic wscale:7,7 rto:241 rtt:40.1/0.3 ato:40 mss:1448 pmtu:1500 rcvmss:536 advmss:1448 cwnd:10 bytes_sent:1448 \
segs_out:3 segs_in:2 data_segs_out:1 send 2.89Mbps lastsnd:4 lastrcv:44 lastack:44 pacing_rate 5.78Mbps unacked:1 \
rcv_space:14480 rcv_ssthresh:64088 minrtt:40
"""
NSTAT = "#kernel\nTcpRetransSegs                  7                  0.0\nTcpExtTCPTimeouts               2    0.0\n"


def marked(text: str, mark: str) -> str:
    return "".join(f"{mark}{line}\n" for line in text.splitlines())


def encoded(text: str) -> str:
    return quopri.encodestring(text.encode()).decode()


PASTED = {
    "quoted": marked(SS, "> "),
    "quoted-twice": marked(SS, "> > "),
    "quoted-without-space": marked(SS, ">"),
    "commented": marked(SS, "# "),
    "broken": encoded(SS),
    "quoted-and-broken": encoded(marked(SS, "> ")),
    "below-a-sentence": "On Tuesday she wrote:\n" + marked(SS, "> "),
}


@all_cases("text", PASTED.values(), ids=list(PASTED))
def test_a_socket_is_read_as_if_it_had_not_been_pasted(text: str) -> None:
    (plain,) = SnapshotFile(SS.encode())
    file = SnapshotFile(text.encode())
    (pasted,) = file

    assert file.format == "ss"
    assert isinstance(plain, SocketSample)
    assert isinstance(pasted, SocketSample)
    assert (pasted.rtt_ns, pasted.cwnd_segments) == (plain.rtt_ns, plain.cwnd_segments) == (40_100_000, 10)
    assert replace(pasted, line=plain.line) == plain


@pytest.mark.parametrize("mark", ["> ", "# "])
def test_counters_too(mark: str) -> None:
    (sample,) = SnapshotFile(marked(NSTAT, mark).encode())
    assert isinstance(sample, CounterSample)
    assert sample.values == {"TcpRetransSegs": 7, "TcpExtTCPTimeouts": 2}


def test_a_line_keeps_its_number() -> None:
    text = encoded(SS)
    wanted = next(number for number, line in enumerate(text.splitlines(), 1) if line.startswith("ESTAB"))
    assert len(text.splitlines()) > len(SS.splitlines())
    second = encoded(SS + "ESTAB 0 0 10.9.1.1:5202 10.9.2.2:36985\n\t cubic wscale:7,7 mss:1448 cwnd:10\n")
    wanted_second = next(number for number, line in enumerate(second.splitlines(), 1) if "36985" in line)

    samples = list(SnapshotFile(second.encode()))
    assert [sample.line for sample in samples] == [wanted, wanted_second]


def test_a_file_that_was_not_pasted_is_left_as_it_is() -> None:
    """No lab snapshot and no sample of any format is taken for pasted text."""
    texts = [*sorted(LAB_RUNS.glob("*/*.txt")), *sorted((Path(__file__).parent / "truth").glob("*/*.txt"))]
    assert texts
    for path in texts:
        lines = path.read_text(encoding="utf8", errors="replace").splitlines(keepends=True)
        assert find_quoting(lines) == Quoting(), path


@all_cases(
    "text",
    [
        "kernel.core_pattern=\nnet.ipv4.tcp_rmem=4096 131072 6291456\n",
        "# a remark\nnet.ipv4.tcp_rmem = 4096 131072 6291456\n",
        "#kernel\nTcpInSegs 7 0.0\n",
        "> \n",
        "",
    ],
)
def test_what_only_looks_like_it(text: str) -> None:
    assert find_quoting(text.splitlines(keepends=True)) == Quoting()


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=200), min_size=1)
)
def test_lines_broken_by_a_mailer_are_joined(lines: list[str]) -> None:
    """Python's quoted-printable writer is independent of the reader."""
    text = "".join(f"{line}\n" for line in lines)
    read = [line for line in unquoted(encoded(text).splitlines(keepends=True), Quoting(is_broken=True)) if line != "\n"]
    assert "".join(read) == text
