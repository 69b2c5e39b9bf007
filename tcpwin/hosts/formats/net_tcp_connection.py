"""Windows sockets from PowerShell's `Get-NetTCPConnection`, as a table or a list.

In: lines of one run or many. Out: a SocketSample per connection with its ends and its state, all that Windows reports
there. Source: the properties of MSFT_NetTCPConnection.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Any

from tcpwin.hosts.format import Format
from tcpwin.hosts.formats.snap import socket_sample
from tcpwin.hosts.lines import Lines
from tcpwin.hosts.socket import SocketSample

STATES = {
    "Established": "ESTAB",
    "SynSent": "SYN-SENT",
    "SynReceived": "SYN-RECV",
    "FinWait1": "FIN-WAIT-1",
    "FinWait2": "FIN-WAIT-2",
    "TimeWait": "TIME-WAIT",
    "Closed": "UNCONN",
    "Bound": "UNCONN",
    "DeleteTCB": "UNCONN",
    "CloseWait": "CLOSE-WAIT",
    "LastAck": "LAST-ACK",
    "Listen": "LISTEN",
    "Closing": "CLOSING",
}
_COLUMNS = ("LocalAddress", "LocalPort", "RemoteAddress", "RemotePort", "State")
_MORE = ("AppliedSetting", "OwningProcess", "CreationTime", "OffloadState")
_MEMBER = re.compile(r"(?P<name>[A-Z][A-Za-z]{1,40})\s*: ?(?P<value>.*)")
_RULE = re.compile(r"[-\s]+")


def recognise(head: list[str]) -> int:
    """Score these lines as the cmdlet's output: its titles in one row, or its members on consecutive lines."""
    if any(tuple(text.split()[:5]) == _COLUMNS for text in head):
        return 95
    names = [match["name"] for text in head if (match := _MEMBER.fullmatch(text.rstrip()))]
    return 95 if any(tuple(names[at : at + 5]) == _COLUMNS for at in range(len(names))) else 0


def read(lines: Lines) -> Iterator[SocketSample]:
    """Yield a sample per connection; a table is one snapshot, and so is a list up to a stamp."""
    index, block = 0, lines.block
    is_table = False
    members: dict[str, str] = {}
    start = 0
    for text in lines:
        line = text.strip()
        if lines.block != block:
            index, block = index + 1, lines.block
            is_table, members = False, {}
        words = line.split()
        if tuple(words[:5]) == _COLUMNS:
            index += is_table
            is_table, members = True, {}
            continue
        if not line or _RULE.fullmatch(line):
            continue
        match = _MEMBER.fullmatch(line)
        if match is not None and match["name"] in (*_COLUMNS, *_MORE):
            is_table = False
            if match["name"] == _COLUMNS[0]:
                members, start = {}, lines.number
            members[match["name"]] = match["value"].strip()
            if match["name"] != _COLUMNS[-1]:
                continue
            values_read: Mapping[str, str] = members
        elif is_table:
            values_read, start = dict(zip(_COLUMNS, words, strict=False)), lines.number
        else:
            lines.reject(text)
            continue
        values = _values(values_read)
        if values is None:
            lines.reject(text)
            continue
        yield socket_sample({**values, "netid": "tcp", "time_ns": lines.time_ns, "line": start, "index": index})


def _values(values_read: Mapping[str, str]) -> dict[str, Any] | None:
    """Return ends and state, or None if a column is missing or was cut to the window's width."""
    if any(name not in values_read for name in _COLUMNS) or values_read["State"] not in STATES:
        return None
    values: dict[str, Any] = {"state": STATES[values_read["State"]]}
    for side, name in (("local", "Local"), ("peer", "Remote")):
        address, _, scope = values_read[f"{name}Address"].partition("%")
        port = values_read[f"{name}Port"]
        try:
            parsed = ip_address(address)
        except ValueError:
            return None
        if not port.isdecimal() or len(port) > 5 or int(port) >= 1 << 16:
            return None
        values[f"{side}_address"] = "*" if parsed.is_unspecified else str(parsed)
        if int(port):
            values[f"{side}_port"] = int(port)
        if scope:
            values[f"{side}_scope"] = scope
    return values


FORMAT = Format("net_tcp_connection", "sockets of Windows: Get-NetTCPConnection", recognise, read, ("sockets",))
