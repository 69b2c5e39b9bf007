"""`Get-NetTCPConnection`: its table and its list, with the columns of Windows 10 and later."""

from __future__ import annotations

from typing import Any

import pytest
from hosts.truth_files import ANY_TEXT, read_text
from hypothesis import given

from tcpwin.hosts import SnapshotFile

TABLE = """\

LocalAddress                        LocalPort RemoteAddress                       RemotePort State       AppliedSetting OwningProcess
------------                        --------- -------------                       ---------- -----       -------------- -------------
::                                  49668     ::                                  0          Listen                     2480
fe80::b1f2:1%7                      50233     fe80::1%7                           445        TimeWait                   0
192.168.1.10                        50234     52.96.165.146                       443        Established Internet       8340
192.168.1.10                        50235     52.96.165.146                       443        CloseWait   Internet       8340

"""  # noqa: E501 - as it is printed
LIST = """\

LocalAddress   : 192.168.1.10
LocalPort      : 50234
RemoteAddress  : 52.96.165.146
RemotePort     : 443
State          : Established
AppliedSetting : Internet
OwningProcess  : 8340
CreationTime   : 11/21/2026 7:22:50 PM
OffloadState   : InHost

LocalAddress   : 192.168.1.10
LocalPort      : 50235
RemoteAddress  : 52.96.165.146
RemotePort     : 443
State          : FinWait1
"""
TRUTHS = {"table": TABLE, "list": LIST, "crlf": TABLE.replace("\n", "\r\n")}


def read(text: str) -> tuple[list[Any], int]:
    file = SnapshotFile(text.encode())
    assert file.format == "net_tcp_connection"
    return list(file), file.unknown.count


@pytest.mark.parametrize("name", ["table", "crlf"])
def test_a_table(name: str) -> None:
    (listening, waiting, open_, closing), unknown = read(TRUTHS[name])
    assert unknown == 0
    assert (listening.state, listening.local_address, listening.local_port, listening.peer_port) == (
        *("LISTEN", "*", 49_668, None),
    )
    assert (waiting.state, waiting.local_address, waiting.local_scope) == ("TIME-WAIT", "fe80::b1f2:1", "7")
    ends = ("192.168.1.10", 50_234, "52.96.165.146", 443)
    assert (open_.local_address, open_.local_port, open_.peer_address, open_.peer_port) == ends
    assert (open_.state, open_.line, closing.state) == ("ESTAB", 6, "CLOSE-WAIT")


def test_a_list() -> None:
    (first, second), unknown = read(LIST)
    assert unknown == 0
    assert (first.state, first.local_port, first.line) == ("ESTAB", 50_234, 2)
    assert (second.state, second.local_port, second.line) == ("FIN-WAIT-1", 50_235, 12)


def test_each_table_is_a_look() -> None:
    samples, unknown = read("### 1795288970" + TABLE + "### 1795288975" + TABLE)
    assert unknown == 0
    assert len({sample.index for sample in samples}) == 2
    assert [sample.time_ns for sample in samples] == [1_795_288_970 * 10**9] * 4 + [1_795_288_975 * 10**9] * 4


@pytest.mark.parametrize(
    "row",
    [
        "2a02:8109:a4c0:1311:…               50234     52.96.165.146            443        Established Internet",
        "192.168.1.10                        99999     52.96.165.146            443        Established Internet",
        "192.168.1.10                        50234     52.96.165.146            443        Etabliert   Internet",
        "192.168.1.10                        50234",
    ],
)
def test_rows_that_are_cut_or_wrong_are_counted(row: str) -> None:
    samples, unknown = read(TABLE.rstrip() + "\n" + row + "\n")
    assert (len(samples), unknown) == (4, 1)


@given(ANY_TEXT)
def test_any_text_is_read_or_rejected(text: str) -> None:
    read_text("net_tcp_connection", TABLE + text)
    read_text("net_tcp_connection", LIST + text)
