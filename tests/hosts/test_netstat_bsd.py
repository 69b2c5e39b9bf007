"""`netstat` of macOS and FreeBSD: tables in the programs' layout."""

from __future__ import annotations

from typing import Any

from cases import all_cases
from hosts.truth_files import ANY_TEXT, read_text
from hypothesis import given

from tcpwin.hosts import SnapshotFile
from tcpwin.hosts.socket import SocketTimer

MACOS = """\
Active Internet connections (including servers)
Proto Recv-Q Send-Q  Local Address          Foreign Address        (state)
tcp4       0  65160  192.168.1.5.52345      93.184.216.34.443      ESTABLISHED
tcp4    8192      0  192.168.1.5.52346      93.184.216.34.443      CLOSE_WAIT
tcp6       0      0  fe80::1%lo0.1024       fe80::2%lo0.1023       FIN_WAIT_2
tcp46      0      0  *.8080                 *.*                    LISTEN
udp4       0      0  *.5353                 *.*
"""
VERBOSE = """\
Active Internet connections (including servers)
Proto Recv-Q Send-Q  Local Address          Foreign Address        (state)      rxbytes      txbytes  rhiwat  shiwat    process:pid    state  options           gencnt    flags   flags1 usecnt rtncnt fltrs
tcp4       0      0  127.0.0.1.50823        127.0.0.1.631          ESTABLISHED           10           20  131072  146808  Code Helper (Plu:113  00180 00000006 000000000000001e 00000000 00000800      1      0 000000
"""  # noqa: E501 - as it is printed
# Columns of FreeBSD's usr.bin/netstat/inet.c with -x: socket buffers, then timers in seconds; no state.
FREEBSD = """\
Active Internet connections
Proto Recv-Q Send-Q Local Address          Foreign Address        R-MBUF S-MBUF R-CLUS S-CLUS R-HIWA S-HIWA R-LOWA S-LOWA R-BCNT S-BCNT R-BMAX S-BMAX   rexmt persist    keep    2msl  delack rcvtime
tcp4       0  33304 10.0.2.15.22           10.0.2.2.49902              0     12      0     12  65700  73728      1   2048      0  52224 525600 589824    0.23    0.00 7199.95    0.00    0.00    0.05
tcp6       0  64000 2001:db8::1.80         2001:db8::2.5000            0     12      0     12  65700  73728      1   2048      0  52224 525600 589824    0.00    4.90    0.00    0.00    0.00    9.10
"""  # noqa: E501 - as it is printed
TRUTHS = {"macos": MACOS, "macos-verbose": VERBOSE, "freebsd": FREEBSD}


def read(text: str) -> tuple[list[Any], int]:
    file = SnapshotFile(text.encode())
    assert file.format == "netstat_bsd"
    return list(file), file.unknown.count


def test_macos() -> None:
    (first, second, third, listening), unknown = read(MACOS)
    assert unknown == 0
    ends = ("192.168.1.5", 52345, "93.184.216.34", 443)
    assert (first.local_address, first.local_port, first.peer_address, first.peer_port) == ends
    assert (first.state, first.recv_q_bytes, first.send_q_bytes, first.line) == ("ESTAB", 0, 65_160, 3)
    assert (second.state, second.recv_q_bytes) == ("CLOSE-WAIT", 8192)
    assert (third.local_address, third.local_scope, third.peer_scope, third.state) == (
        *("fe80::1", "lo0", "lo0", "FIN-WAIT-2"),
    )
    assert (listening.local_address, listening.local_port, listening.peer_port) == ("*", 8080, None)
    assert (listening.state, listening.recv_q_bytes, listening.accept_queue) == ("LISTEN", None, None)


def test_buffers_of_macos() -> None:
    (only,), unknown = read(VERBOSE)
    assert unknown == 0
    assert (only.rcvbuf_bytes, only.sndbuf_bytes, only.state) == (131_072, 146_808, "ESTAB")


def test_buffers_and_timers_of_freebsd() -> None:
    (first, second), unknown = read(FREEBSD)
    assert unknown == 0
    assert (first.state, first.send_q_bytes, first.rcvbuf_bytes, first.sndbuf_bytes) == ("", 33_304, 65_700, 73_728)
    assert first.timer == SocketTimer("on", 230_000_000, 0)
    # The persist timer runs: the peer's window is closed.
    assert second.timer == SocketTimer("persist", 4_900_000_000, 0)
    assert (second.local_address, second.local_port) == ("2001:db8::1", 80)


def test_each_table_is_a_look() -> None:
    looks = "### 1795288970\n" + MACOS + "### 1795288975\n" + MACOS
    samples, unknown = read(looks)
    assert unknown == 0
    assert [sample.index for sample in samples] == [0] * 4 + [1] * 4
    assert {sample.time_ns for sample in samples} == {1_795_288_970 * 10**9, 1_795_288_975 * 10**9}


@all_cases(
    "row",
    [
        "tcp6       0      0  2a02:8109:a4c0:13.58090 2607:f8b0:4005:80.443  ESTABLISHED",
        "tcp4       0      0  192.168.1.5.52345      93.184.216.34.https    ESTABLISHED",
        "tcp4       0      0  192.168.1.5.99999      93.184.216.34.443      ESTABLISHED",
        "tcp4       0      0  192.168.1.5.52345      93.184.216.34.443      WHATEVER",
        "tcp4       0      x  192.168.1.5.52345      93.184.216.34.443      ESTABLISHED",
        "tcp4       0      0",
        "hello",
    ],
)
def test_rows_that_are_cut_or_wrong_are_counted(row: str) -> None:
    samples, unknown = read(MACOS + row + "\n")
    assert (len(samples), unknown) == (4, 1)


def test_linux_is_another_format() -> None:
    head = "Active Internet connections (servers and established)\nProto Recv-Q Send-Q Local Address           Foreign "
    text = head + "Address         State\ntcp        0      0 127.0.0.1:631           0.0.0.0:*               LISTEN\n"
    assert SnapshotFile(text.encode() + b"tcp6 0 0 :::80 :::* LISTEN\n", format="netstat_bsd").format == "netstat_bsd"
    assert read_text("netstat_bsd", text)[0] == []


@given(ANY_TEXT)
def test_any_text_is_read_or_rejected(text: str) -> None:
    read_text("netstat_bsd", MACOS + text)
